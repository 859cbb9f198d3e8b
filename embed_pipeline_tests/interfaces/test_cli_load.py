"""`embed-pipeline load`: good rows are kept, bad ones are told with their line."""

from __future__ import annotations

from pathlib import Path

import pytest

from embed_pipeline.worker.context import Services
from embed_pipeline_tests.contracts.entity_store.scene import coverage_of
from embed_pipeline_tests.interfaces.command_line import environment, run_at_terminal
from embed_pipeline_tests.interfaces.conftest import CommandLine

GOOD = 'name,entityType,observations\nZeer pot,Invention,"[""Cools.""]"\nLoom,Invention,Weaves.\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "entities.csv"


def test_load_creates_the_entities_and_one_job_each(cli: CommandLine, file: Path) -> None:
    file.write_text(GOOD)

    answer = cli("load", str(file), "--json")

    assert answer.code == 0
    assert answer.json == {
        "rows": 2,
        "created": 2,
        "changed": 0,
        "unchanged": 0,
        "new_jobs": 2,
        "refused": 0,
        "bad_rows": [],
        "ignored_columns": [],
    }
    assert cli("status", "--json").json["pending"] == 2


def test_load_is_readable(cli: CommandLine, file: Path) -> None:
    file.write_text(GOOD)

    answer = cli("load", str(file))

    assert answer.out.startswith("Loaded entities.csv\n")
    assert ["created", "2"] in [line.split() for line in answer.out.splitlines()]


def test_loading_the_same_file_twice_changes_nothing(
    cli: CommandLine, file: Path, services: Services
) -> None:
    file.write_text(GOOD)
    cli("load", str(file))
    cli("run")

    answer = cli("load", str(file), "--json")

    assert (answer.json["unchanged"], answer.json["new_jobs"]) == (2, 0)
    assert services.jobs.get_queue_status().pending == 0
    assert coverage_of(services.graph, model=services.model).percent == 100


def test_changed_row_is_updated_and_its_new_version_queued(
    cli: CommandLine, file: Path, services: Services
) -> None:
    file.write_text(GOOD)
    cli("load", str(file))
    cli("run")
    file.write_text(GOOD.replace("Weaves.", "Weaves silk by punched cards."))

    answer = cli("load", str(file), "--json")

    assert (answer.json["changed"], answer.json["unchanged"]) == (1, 1)
    assert answer.json["new_jobs"] == services.jobs.get_queue_status().pending == 1
    assert "punched cards" in services.graph.find_by_name("Loom")[0].text


def test_good_rows_are_kept_and_bad_ones_told_with_their_line(
    cli: CommandLine, file: Path, services: Services
) -> None:
    file.write_text(
        "name,entityType,observations\n"
        "Good,Thing,fine\n"
        " ,Thing,without a name\n"
        "Long,Thing,fine,too much\n"
        "Short,Thing\n"
        'Broken,Thing,"[""not closed"""\n'
        'Numbers,Thing,"[1, 2]"\n'
        "Also good,Thing,\n"
    )

    parsed, readable = cli("load", str(file), "--json"), cli("load", str(file))

    assert (parsed.code, readable.code) == (1, 1)
    assert (parsed.json["created"], parsed.json["refused"]) == (2, 5)
    assert parsed.json["bad_rows"] == [
        "line 3: has no name",
        "line 4: has more cells than the header",
        "line 5: has fewer cells than the header",
        "line 6: has a list that is not JSON: Expecting ',' delimiter",
        "line 7: has a list with something else than strings",
    ]
    assert "line 4: has more cells than the header" in readable.out
    assert services.graph.find_by_name("Also good")


def test_thousand_bad_rows_are_counted_and_the_first_are_shown(
    cli: CommandLine, file: Path
) -> None:
    file.write_text("name\n" + '" "\n' * 1_000)

    answer = cli("load", str(file), "--json")

    assert (answer.code, answer.json["refused"]) == (1, 1_000)
    assert len(answer.json["bad_rows"]) == 21
    assert answer.json["bad_rows"][-1] == "and 980 more, each with a line in the log"


def test_every_bad_row_has_a_line_in_the_log(cli: CommandLine, file: Path) -> None:
    file.write_text("name\n" + '" "\n' * 30)

    answer = cli("load", str(file), EMBED_LOG_LEVEL="INFO")

    assert answer.err.count("load.row_refused") == 30


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty: it needs a header and rows."),
        (
            b"title,notes\na,b\n",
            "has no column 'name'; it has: title, notes. "
            "Say which columns to use, for example: --name title --text notes\n",
        ),
        (b"name,name\na,b\n", "has columns of the same name: name."),
        (b'"name"x,entityType\na,b\n', "has a header that is not CSV:"),
        ("name\nÄther\n".encode("latin-1"), "is not UTF-8 text."),
    ],
)
def test_unusable_file_is_one_sentence(
    cli: CommandLine, file: Path, content: bytes, sentence: str
) -> None:
    file.write_bytes(content)

    answer = cli("load", str(file), "--json")

    assert (answer.code, answer.out) == (1, "")
    assert len(answer.sentences) == 1
    assert sentence in answer.err


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(
    ("stem", "reason"),
    [("nowhere", "No such file or directory"), ("folder", "Is a directory")],
)
def test_file_that_cannot_be_read_is_one_sentence(
    cli: CommandLine, tmp_path: Path, ending: str, stem: str, reason: str
) -> None:
    name = f"{stem}.{ending}"
    (tmp_path / f"folder.{ending}").mkdir()

    answer = cli("load", name)

    assert (answer.code, answer.out) == (1, "")
    assert answer.err == f"{name} cannot be read: {reason}.\n"


def test_header_alone_is_no_error(cli: CommandLine, file: Path) -> None:
    file.write_text("name\n")

    answer = cli("load", str(file), "--json")

    assert (answer.code, answer.json["rows"]) == (0, 0)


def test_load_survives_an_unusable_queue_and_discovery_queues_later(
    cli: CommandLine, file: Path, home: Path
) -> None:
    file.write_text(GOOD)
    home.mkdir()
    (home / "queue.sqlite").write_bytes(b"no database at all" * 500)

    loaded = cli("load", str(file), "--json")
    (home / "queue.sqlite").unlink()
    discovered = cli("discover", "--json")

    assert (loaded.code, loaded.json["created"], loaded.json["new_jobs"]) == (0, 2, 0)
    assert "discovery will queue these" in loaded.json["queue"]
    assert discovered.json["new_jobs"] == 2


def test_file_with_three_bad_rows_loads_the_rest_and_names_the_three(
    cli: CommandLine, file: Path, services: Services
) -> None:
    rows = [f"thing {number},Thing,Something." for number in range(1_000)]
    rows[10], rows[500], rows[999] = ",Thing,Nameless.", "x,Thing,[broken", "only one cell"
    file.write_text("\n".join(["name,entityType,observations", *rows]) + "\n")

    answer = cli("load", str(file), "--json")

    assert answer.code == 1
    assert (answer.json["rows"], answer.json["created"], answer.json["refused"]) == (1_000, 997, 3)
    assert answer.json["bad_rows"] == [
        "line 12: has no name",
        "line 502: has a list that is not JSON: Expecting value",
        "line 1001: has fewer cells than the header",
    ]
    assert services.jobs.get_queue_status().pending == 997


def test_load_takes_json_lines(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "entities.jsonl").write_text('{"name": "Loom"}\n')

    assert cli("load", "entities.jsonl", "--json").json["created"] == 1


def test_unknown_format_is_one_sentence(cli: CommandLine) -> None:
    answer = cli("load", "entities.docx")

    assert (answer.code, answer.out) == (1, "")
    assert "ends with one of: .csv, .tsv, .json, .jsonl, .ndjson, .xlsx, .parquet" in answer.err


def test_progress_is_shown_to_a_person(home: Path, tmp_path: Path, file: Path) -> None:
    file.write_text(GOOD)

    answer = run_at_terminal("load", str(file), env=environment(home), cwd=tmp_path)

    assert answer.code == 0
    assert "Loading" in answer.out
    assert "Loaded entities.csv" in answer.out
