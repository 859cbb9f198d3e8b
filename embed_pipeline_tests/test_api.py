"""The door for services: open once, create, search, close; and its example, executed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest

from embed_pipeline.api import EntityUid, NewEntity, Pipeline, Reason, SearchResult, open_pipeline
from embed_pipeline.errors import ConfigurationError, RequestError
from embed_pipeline.settings import load_settings
from embed_pipeline_tests.interfaces.command_line import environment, run_program

ROOT = Path(__file__).parents[1]
EXAMPLES, PAGE = ROOT / "examples", ROOT / "docs" / "python.md"


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    return {"EMBED_ENV": "test", "EMBED_HOME": str(tmp_path / "home")}


@pytest.fixture
def pipeline(variables: dict[str, str]) -> Iterator[Pipeline]:
    with open_pipeline(variables) as pipeline:
        yield pipeline


def embed(variables: dict[str, str], tmp_path: Path) -> None:
    answer = run_program("run", env=environment(tmp_path / "home", **variables), cwd=tmp_path)
    assert answer.code == 0


def test_created_entities_have_exactly_one_job_each(pipeline: Pipeline) -> None:
    report = pipeline.create_entities([NewEntity(name="a"), NewEntity(name="b")])
    again = pipeline.create_entities([NewEntity(name="a")])

    assert (report.created, report.jobs.new_jobs, report.queued) == (2, 2, True)
    assert (again.created, again.unchanged, again.jobs.new_jobs) == (0, 1, 0)


def test_changed_text_queues_its_new_version_at_once(pipeline: Pipeline) -> None:
    def noted(text: str) -> NewEntity:
        return NewEntity(name="a", properties={"observations": (text,)})

    pipeline.upsert_entities([noted("first")])
    changed = pipeline.upsert_entities([noted("second")])
    same = pipeline.upsert_entities([noted("second")])

    assert (changed.changed, changed.jobs.new_jobs) == (1, 1)
    assert (same.unchanged, same.jobs.new_jobs) == (1, 0)


def test_named_entities_are_queued_if_another_program_changed_them(pipeline: Pipeline) -> None:
    pipeline.create_entities([NewEntity(name="a")])

    report = pipeline.refresh(["a", "nowhere"])

    assert (report.queued, report.unknown_names) == (1, ["nowhere"])


def test_text_and_preview_show_what_is_embedded(pipeline: Pipeline) -> None:
    pipeline.create_entities([NewEntity(name="a", properties={"observations": ("first",)})])

    (first,) = pipeline.preview().texts

    assert first == pipeline.text("a")
    assert first.text == "a\nfirst"


def test_creating_calls_no_provider(variables: dict[str, str]) -> None:
    away = {"EMBEDDING_PROVIDER": "openai", "OPENAI_API_KEY": "key-for-tests-only"}
    away["OPENAI_BASE_URL"] = "http://127.0.0.1:9/v1"

    with open_pipeline(variables | away) as pipeline:
        assert pipeline.create_entities([NewEntity(name="a")]).queued


def test_what_is_embedded_is_found_and_what_is_deleted_is_not(
    pipeline: Pipeline, variables: dict[str, str], tmp_path: Path
) -> None:
    kept, gone = NewEntity(name="a", entity_type="Kept"), NewEntity(name="b", entity_type="Gone")
    pipeline.create_entities([kept, gone])
    waiting = pipeline.why("a")[0].reason
    embed(variables, tmp_path)

    assert pipeline.delete_entities([gone.identity]) == (gone.identity,)
    result = pipeline.search("anything")

    assert waiting is Reason.WAITING
    assert [hit.entity.name for hit in result.hits] == ["a"]
    assert (result.searchable, pipeline.coverage().percent) == (1, 100)
    assert pipeline.search("anything", entity_type="Gone").hits == ()
    assert pipeline.why(key=EntityUid(gone.identity))[0].reason is Reason.DELETED


def test_wrong_arguments_are_one_sentence_and_change_nothing(pipeline: Pipeline) -> None:
    with pytest.raises(RequestError, match="its name is empty"):
        pipeline.create_entities([NewEntity(name="good"), NewEntity(name=" ")])

    assert pipeline.coverage().entities == 0


def test_bad_settings_are_told_when_it_is_opened(variables: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="EMBED_JOB_BATCH_SIZE"):
        open_pipeline(variables | {"EMBED_JOB_BATCH_SIZE": "0"})


def test_it_opens_by_settings_too_and_may_be_closed_twice(variables: dict[str, str]) -> None:
    pipeline = open_pipeline(load_settings(variables))
    pipeline.create_entities([NewEntity(name="a")])

    pipeline.close()
    pipeline.close()


def run_python(*words: str | Path, env: dict[str, str], cwd: Path) -> str:
    return subprocess.run(
        [sys.executable, *words],
        env=env,
        cwd=cwd,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout


def test_the_example_creates_and_then_finds(variables: dict[str, str], tmp_path: Path) -> None:
    env = environment(tmp_path / "home", **variables)

    first = run_python(EXAMPLES / "create_entities.py", env=env, cwd=tmp_path)
    embed(variables, tmp_path)
    second = run_python(EXAMPLES / "create_entities.py", env=env, cwd=tmp_path)

    assert "2 created, 2 queued" in first
    assert "the same again: 2 unchanged, 0 queued" in first
    assert "0 of 2 orders can be found" in first
    assert "'Order 1002'" in first
    assert "2 of 2 orders can be found" in second
    assert "the nearest is Order" in second


def test_the_code_of_the_page_runs(variables: dict[str, str], tmp_path: Path) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)

    answer = run_python("-c", code, env=environment(tmp_path / "home", **variables), cwd=tmp_path)

    assert answer == "1 1 True\n"


def test_the_page_names_every_call() -> None:
    calls = {name for name in vars(Pipeline) if not name.startswith("_")}

    assert {name for name in calls if f"`{name}(" not in PAGE.read_text()} == set()


def test_frame_becomes_entities_and_hits_become_a_frame(
    pipeline: Pipeline, variables: dict[str, str], tmp_path: Path
) -> None:
    frame = pd.DataFrame(
        {
            "id": [1.0, 2.0, None],
            "title": ["a", None, 1984],
            "tags": [np.array(["x", "y"]), None, ["z"]],
            "day": [pd.Timestamp("2026-01-01"), None, pd.Timestamp("2026-01-03")],
            7: [1, 2, 3],
        },
        index=["p", "q", "r"],
    )

    report = pipeline.upsert_frame(frame, name="title", text=["tags", "day"], key="id")
    embed(variables, tmp_path)
    found = pipeline.search("x").to_frame()

    assert (report.created, report.new_jobs, report.ignored_columns) == (2, 2, ["7"])
    assert report.bad_rows() == ["row 1: has no title"]
    assert pipeline.text(key=EntityUid("1")).text == "a\nx\ny\n2026-01-01T00:00:00"
    assert list(found.columns) == ["score", "name", "type", "key", "text"]
    assert sorted(found["name"]) == ["1984", "a"]
    assert pipeline.coverage_frame()[["embedded", "percent"]].values.tolist() == [[2, 100.0]]


def test_frame_without_the_named_column_is_refused(pipeline: Pipeline) -> None:
    with pytest.raises(RequestError, match="The frame has no column 'name'; it has: title"):
        pipeline.upsert_frame(pd.DataFrame({"title": ["a"]}))


def test_search_without_hits_is_a_frame_without_rows() -> None:
    assert SearchResult().to_frame().shape == (0, 5)


def test_the_notebook_runs_from_top_to_bottom(tmp_path: Path) -> None:
    """Its cells in order, as the kernel would run them: they use nothing but Python."""
    cells = json.loads((EXAMPLES / "frames.ipynb").read_text())["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    check = "assert (report.created, changed.changed, changed.new_jobs) == (3, 1, 1)\n"
    check += "assert hits['name'][0] == 'Roadside Picnic', hits\n"

    run_python("-c", "\n".join([*code, check]), env=environment(tmp_path / "home"), cwd=tmp_path)


def test_the_notebook_is_stored_without_outputs() -> None:
    cells = json.loads((EXAMPLES / "frames.ipynb").read_text())["cells"]

    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)
