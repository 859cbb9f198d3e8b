"""Every format beside CSV: the same entities, the same care with bad rows."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.errors import RequestError
from embed_pipeline.usecases.files.formats import FORMATS, BadRow, format_of
from embed_pipeline.usecases.files.formats.table import CELL_TOO_LONG, LONGEST_CELL
from embed_pipeline.usecases.files.load import load_file
from embed_pipeline_tests.usecases.files import rows_of
from embed_pipeline_tests.worker.scene import World

LONG = 20_000
ROWS: Sequence[dict[str, Any]] = [
    {
        "uid": "z1",
        "name": "Zeer pot",
        "entityType": "Invention",
        "observations": ["Cools.", "Clay"],
    },
    {"uid": "l1", "name": "Loom", "entityType": "Invention", "observations": ["Weaves."]},
]


def write_jsonl(path: Path, rows: Sequence[object]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_parquet(path: Path, rows: Sequence[object]) -> None:
    pd.DataFrame(rows).to_parquet(path, index=False)


def write_parquet_gz(path: Path, rows: Sequence[object]) -> None:
    path.write_bytes(gzip.compress(pd.DataFrame(rows).to_parquet(index=False)))


def write_json(path: Path, rows: Sequence[object]) -> None:
    path.write_text(json.dumps(rows))


def write_excel(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    pytest.importorskip("openpyxl")
    pd.DataFrame(_with_json_lists(rows)).to_excel(path, index=False)


def write_tsv(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    pd.DataFrame(_with_json_lists(rows)).to_csv(path, index=False, sep="\t")


def _with_json_lists(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row | {"observations": json.dumps(row["observations"])} for row in rows]


def write_csv(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    pd.DataFrame(_with_json_lists(rows)).to_csv(path, index=False)


WRITERS: dict[str, Callable[[Path, Any], None]] = {
    "entities.csv": write_csv,
    "entities.jsonl": write_jsonl,
    "entities.NDJSON": write_jsonl,
    "entities.parquet": write_parquet,
    "entities.json": write_json,
    "entities.tsv": write_tsv,
    "entities.csv.gz": write_csv,
    "entities.xlsx": write_excel,
    "entities.parquet.gz": write_parquet_gz,
}


def jsonl(tmp_path: Path, *lines: str | bytes) -> Path:
    path = tmp_path / "entities.jsonl"
    path.write_bytes(b"\n".join(x if isinstance(x, bytes) else x.encode() for x in lines))
    return path


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_entities(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    WRITERS[name](path, ROWS)

    assert list(rows_of(path)) == [
        NewEntity(
            uid=EntityUid(row["uid"]),
            name=row["name"],
            entity_type=row["entityType"],
            properties={"observations": tuple(row["observations"])},
        )
        for row in ROWS
    ]


@pytest.mark.parametrize("name", WRITERS)
def test_loading_the_same_file_again_changes_nothing(
    world: World, tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    WRITERS[name](path, ROWS)

    first = load_file(world.services, path)
    world.run()
    again = load_file(world.services, path)

    assert (first.created, first.new_jobs) == (2, 2)
    assert (again.unchanged, again.new_jobs) == (2, 0)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"name": "a"', "is not JSON: Expecting ',' delimiter"),
        ("7", "is not a JSON object"),
        ('{"entityType": "Thing"}', "has no name"),
        ('{"name": null}', "has no name"),
        ('{"name": {"first": "a"}}', "has a name that is not a text"),
        ('{"name": "a", "uid": 1.5}', "has a key that is neither a string nor a whole number"),
        (
            '{"name": "a", "observations": ["x", ["y"]]}',
            "has observations that are neither a text nor a list of texts",
        ),
        ('{"name": "a", "uid": "a\\u0000b"}', "Entity 'a\\x00b': its key holds a NUL character"),
        (b'{"name": "\xff"}', "is not UTF-8 text"),
        ("[" * 1_000_000, "is nested too deep"),
        (f'{{"name": "a", "uid": {"1" * 5_000}}}', "has a number with too many digits"),
        (f'{{"name": "a", "observations": ["{"x" * LONGEST_CELL}", "x"]}}', CELL_TOO_LONG),
    ],
)
def test_bad_line_is_reported_and_costs_no_other(
    tmp_path: Path, line: str | bytes, reason: str
) -> None:
    path = jsonl(tmp_path, '{"name": "before"}', "", line, '{"name": "after"}')

    before, bad, after = rows_of(path)

    assert bad == BadRow(line=3, reason=reason)
    assert isinstance(before, NewEntity)
    assert isinstance(after, NewEntity)


def test_whole_numbers_are_keys_and_nothing_is_nothing(tmp_path: Path) -> None:
    path = jsonl(tmp_path, '\ufeff{"uid": 7, "name": " a ", "observations": null}')

    assert list(rows_of(path)) == [
        NewEntity(uid=EntityUid("7"), name="a", properties={"observations": None})
    ]


def test_json_list_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="is a JSON list: say --format json"):
        list(rows_of(jsonl(tmp_path, '[{"name": "a"}]')))


def test_missing_cells_of_a_frame_are_nothing(tmp_path: Path) -> None:
    path = tmp_path / "entities.parquet"
    frame = pd.DataFrame({"uid": [1, 2], "name": ["a", None], "entityType": ["Thing", None]})
    frame.to_parquet(path, index=False)

    assert list(rows_of(path)) == [
        NewEntity(uid=EntityUid("1"), name="a", entity_type="Thing"),
        BadRow(line=2, reason="has no name"),
    ]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"not parquet at all", "is no Parquet file, or is damaged"),
        (b"", "is no Parquet file, or is damaged"),
    ],
)
def test_file_that_is_no_parquet_is_one_sentence(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "entities.parquet"
    path.write_bytes(content)

    with pytest.raises(RequestError, match=says):
        list(rows_of(path))


@pytest.mark.parametrize("name", WRITERS)
def test_column_that_no_property_needs_is_ignored_and_named(
    world: World, tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    WRITERS[name](path, [row | {"colour": "red", "size": 7} for row in ROWS])

    report = load_file(world.services, path)

    assert (report.created, report.refused) == (2, 0)
    assert report.ignored_columns == ["colour", "size"]


def test_unknown_ending_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(RequestError) as refused:
        format_of(tmp_path / "entities.docx")

    assert all(ending in str(refused.value) for ending in FORMATS)


def test_bad_rows_of_a_table_are_reported_by_their_row(world: World, tmp_path: Path) -> None:
    path = tmp_path / "entities.parquet"
    pd.DataFrame({"name": ["a", "", "c"]}).to_parquet(path, index=False)

    report = load_file(world.services, path)

    assert (report.created, report.bad_rows()) == (2, ["row 2: has no name"])


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_long_file_is_read_with_a_few_rows_in_memory(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"entities.{ending}"
    note = "a sentence of some length about this very thing, number "
    rows = [{"name": f"thing {n}", "observations": [f"{note}{n}"]} for n in range(LONG)]
    WRITERS[f"entities.{ending}"](path, rows)
    del rows
    arrow = pa.default_memory_pool()
    before = arrow.bytes_allocated()
    most = 0

    tracemalloc.start()
    for count, _ in enumerate(rows_of(path), 1):
        if count % 1_000 == 0:
            most = max(most, arrow.bytes_allocated() - before)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert count == LONG
    assert peak + most < 4 * 1024 * 1024
