"""`embed-pipeline collection`, on files in SQLite."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from embed_pipeline.interfaces.cli.app import app

FILE = """\
collections:
  - {name: people, label: Person, key: id, key_type: integer, text: [name, bio]}
  - {name: books, label: Book, key: isbn, name_property: title, text: [title]}
"""

Run = Callable[..., Result]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "collections.yaml"
    path.write_text(FILE, encoding="utf-8")
    return path


@pytest.fixture
def run(tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "EMBED_ENV": "test",
        "EMBED_HOME": "home",
        "EMBED_CONFIG": file.name,
    }.items():
        monkeypatch.setenv(name, value)

    def invoke(*words: str, code: int = 0) -> Result:
        result = CliRunner().invoke(app, words)
        assert result.exit_code == code, (result.output, result.exception)
        return result

    invoke("init")
    return invoke


def listed(run: Run) -> dict[str, tuple[str, str]]:
    rows = json.loads(run("collection", "list", "--json").stdout)
    return {row["name"]: (row["uids"], row["state"]) for row in rows}


def test_the_collections_of_graph_and_settings_are_listed(run: Run, file: Path) -> None:
    file.write_text(FILE + "  - {name: tools, label: Tool, key: id, text: [name]}\n")

    assert listed(run) == {
        "people": ("KEY", "in use"),
        "books": ("books/KEY", "in use"),
        "tools": ("", "new: embed-pipeline init"),
    }


def test_a_renamed_collection_keeps_its_uids(run: Run, file: Path) -> None:
    run("collection", "rename", "books", "volumes")
    file.write_text(FILE.replace("name: books", "name: volumes"), encoding="utf-8")

    assert listed(run) == {"people": ("KEY", "in use"), "volumes": ("books/KEY", "in use")}
    run("collection", "rename", "people", "books", code=1)


def test_a_removed_collection_takes_its_jobs_with_it(run: Run, file: Path) -> None:
    books = file.with_name("books.csv")
    books.write_text("isbn,title\n1,Loom\n2,Wheel\n", encoding="utf-8")
    run("load", str(books), "--collection", "books")
    answer = json.loads(run("collection", "remove", "books", "--yes", "--json").stdout)

    assert answer == {"removed": "books", "cancelled": 2}
    assert listed(run)["people"] == ("KEY", "in use")
    run("collection", "remove", "people", "--yes", code=1)


def test_what_has_not_changed_needs_no_acceptance(run: Run) -> None:
    assert "has not changed" in run("collection", "accept", "books").stdout
