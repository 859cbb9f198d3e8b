"""Files with cells and rows that are too long: refused by their line, never held in memory."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.errors import RequestError
from embed_pipeline.usecases.files import load
from embed_pipeline.usecases.files.formats import (
    BadRow,
    csv_files,
    jsonl_files,
    parquet_files,
)
from embed_pipeline.usecases.files.formats.table import CELL_TOO_LONG, LONGEST_CELL, ROW_TOO_LONG
from embed_pipeline.usecases.files.load import PAGE, LoadReport, load_file
from embed_pipeline_tests.usecases.files import rows_of
from embed_pipeline_tests.worker.scene import World

MEGABYTE = 1024 * 1024
NOT_READ = "; the rest of the file was not read"
LONG_ROW = 64 * 1024


@pytest.fixture
def short_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row may have 64 kB and a cell 32 kB, so that small files reach the limits."""
    for module in (csv_files, jsonl_files, parquet_files):
        monkeypatch.setattr(module, "LONGEST_ROW", LONG_ROW)
    for module in (csv_files, parquet_files):
        monkeypatch.setattr(module, "LONGEST_CELL", LONG_ROW // 2)
    for module in (csv_files, jsonl_files):
        monkeypatch.setattr(module, "PIECE", 8 * 1024)


def results(path: Path) -> list[str | tuple[int, str]]:
    """Names of entities, and lines and reasons of bad rows."""
    return [
        row.name if isinstance(row, NewEntity) else (row.line, row.reason) for row in rows_of(path)
    ]


@contextmanager
def memory_below(limit: int) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < limit


@pytest.mark.usefixtures("short_rows")
@pytest.mark.parametrize(
    ("ending", "lines"),
    [
        ("csv", ["name,observations", "before,x", "long,{}", "after,x", ",x"]),
        (
            "jsonl",
            [
                "",
                '{"name": "before"}',
                '{"name": "long", "observations": "{}"}',
                '{"name": "after"}',
                '{"name": ""}',
            ],
        ),
    ],
)
def test_line_that_is_too_long_is_skipped_without_being_in_memory(
    tmp_path: Path, ending: str, lines: list[str]
) -> None:
    path = tmp_path / f"entities.{ending}"
    path.write_text("\n".join(lines).replace("{}", "x" * 20 * MEGABYTE))

    with memory_below(2 * MEGABYTE):
        found = results(path)

    assert found == ["before", (3, ROW_TOO_LONG), "after", (5, "has no name")]


@pytest.mark.usefixtures("short_rows")
def test_csv_cell_that_is_too_long_costs_no_other_row(tmp_path: Path) -> None:
    path = tmp_path / "entities.csv"
    cell = "x" * (LONG_ROW // 2 + 1)
    path.write_text(f'name,observations\nlong,{cell}\nquoted,"{cell}"\nafter,x\n')

    assert results(path) == [(2, CELL_TOO_LONG), (3, CELL_TOO_LONG), "after"]


@pytest.mark.usefixtures("short_rows")
@pytest.mark.parametrize(
    ("rest", "line", "reason"),
    [
        ("\n".join("x" * 100 for _ in range(1_000)), 326, CELL_TOO_LONG),
        ("x" * MEGABYTE + '\n",x\nafter,x', 2, ROW_TOO_LONG),
    ],
    ids=["lines", "one line"],
)
def test_csv_quote_that_stays_open_ends_the_file_with_its_line(
    tmp_path: Path, rest: str, line: int, reason: str
) -> None:
    path = tmp_path / "entities.csv"
    path.write_text(f'name,observations\nopen,"{rest}')

    assert results(path) == [(line, reason + NOT_READ)]


@pytest.mark.usefixtures("short_rows")
def test_csv_row_of_many_lines_has_the_same_limit(tmp_path: Path) -> None:
    path = tmp_path / "entities.csv"
    cell = '"' + "x\n" * (LONG_ROW // 5) + '"'
    path.write_text(f"uid,name,observations\n{cell},{cell},{cell}\n,after,x\n")

    (bad,) = results(path)

    assert isinstance(bad, tuple)
    assert bad[1] == ROW_TOO_LONG + NOT_READ


@pytest.mark.usefixtures("short_rows")
def test_csv_header_that_is_too_long_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "entities.csv"
    path.write_text("x" * MEGABYTE)

    with pytest.raises(RequestError, match=ROW_TOO_LONG):
        results(path)


def parquet(tmp_path: Path, **columns: pa.Array) -> Path:
    path = tmp_path / "entities.parquet"
    pq.write_table(pa.table(columns), path, compression="zstd")
    return path


def random_text(length: int, seed: int = 1) -> str:
    """Which no codec makes much smaller."""
    return random.Random(seed).randbytes(length // 2).hex()


def repeated(text: str, times: int) -> pa.Array:
    """One string in the file's dictionary, for all rows."""
    return pa.DictionaryArray.from_arrays(pa.array([0] * times, pa.int32()), [text])


@pytest.mark.parametrize("length", [LONGEST_CELL + 1, LONGEST_CELL - 1])
def test_small_parquet_file_of_long_strings_takes_little_memory(
    tmp_path: Path, length: int
) -> None:
    rows = 100
    path = parquet(
        tmp_path,
        name=pa.array([f"thing {n}" for n in range(rows)]),
        observations=repeated("x" * length, rows),
    )
    assert_little_memory(path, refused=rows if length > LONGEST_CELL else 0)


def test_small_parquet_file_of_a_long_list_takes_little_memory(tmp_path: Path) -> None:
    path = parquet(
        tmp_path,
        name=pa.array(["thing"]),
        observations=pa.ListArray.from_arrays([0, 500], repeated("x" * MEGABYTE, 500)),
    )
    assert_little_memory(path, refused=1)


@pytest.mark.parametrize("pages", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd", "lz4", "gzip", "brotli"])
def test_long_string_that_fills_a_list_takes_little_memory_however_it_is_compressed(
    tmp_path: Path, compression: str, pages: str
) -> None:
    text = repeated(random_text(MEGABYTE), 500)
    columns = {
        "name": ["thing", "other"],
        "observations": pa.ListArray.from_arrays([0, 500, 500], text),
    }
    path = tmp_path / "entities.parquet"
    options = {"compression": compression, "data_page_version": pages}
    # Without Arrow's own schema, by which pyarrow would keep the dictionary when it reads.
    pq.write_table(pa.table(columns), path, store_schema=False, **options)

    assert_little_memory(path, refused=1, size=2 * MEGABYTE)


def test_long_string_of_many_rows_takes_little_memory(tmp_path: Path) -> None:
    text = repeated(random_text(LONGEST_CELL - 1), 32)
    path = tmp_path / "entities.parquet"
    columns = {"name": [f"thing {n}" for n in range(32)], "observations": text}
    pq.write_table(pa.table(columns), path, store_schema=False)

    assert_little_memory(path, refused=0, size=LONGEST_CELL + MEGABYTE)


def test_common_parquet_file_is_not_suspicious(tmp_path: Path) -> None:
    """Columns that are would be read slowly, with all the strings of a row group in memory."""
    texts = [random_text(100 + n % 100, seed=n) for n in range(20_000)]
    path = parquet(
        tmp_path,
        name=pa.array(texts),
        entityType=pa.array(["Person", "Book"] * 10_000),
        observations=pa.array([[text, texts[0]] for text in texts]),
    )

    with path.open("rb") as file:
        table = parquet_files._opened(pa, file)

    assert "dictionary" not in str(table.schema_arrow)


def test_parquet_with_a_damaged_page_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = parquet(tmp_path, name=pa.array(["a", "b"]))
    content = bytearray(path.read_bytes())
    for damage in (b"\x1c" * 40, b"\xff" * 40, b"\x15\x00\x15" + b"\xff" * 9 + b"\x01"):
        content[4 : 4 + len(damage)] = damage
        path.write_bytes(content)

        with pytest.raises(RequestError, match="damaged"):
            results(path)


def assert_little_memory(path: Path, *, refused: int, size: int = 10_000) -> None:
    arrow = pa.default_memory_pool()
    before, most, found = arrow.bytes_allocated(), 0, 0
    assert path.stat().st_size < size

    with memory_below(5 * LONGEST_CELL):
        for row in rows_of(path):
            most = max(most, arrow.bytes_allocated() - before)
            found += isinstance(row, BadRow) and row.reason == CELL_TOO_LONG
            del row

    assert most < 5 * LONGEST_CELL
    assert found == refused


@pytest.mark.usefixtures("short_rows")
def test_long_cells_and_rows_of_parquet_cost_no_other_row(tmp_path: Path) -> None:
    cell, part = "x" * (LONG_ROW // 2 + 1), "x" * (LONG_ROW // 2 - 8)
    path = parquet(
        tmp_path,
        uid=pa.array(["1", "2", "3", part, None]),
        name=pa.array(["first", cell, "list", part, "last"]),
        observations=pa.array([["x"], None, [part, part], [part], []]),
    )

    assert results(path) == [
        "first",
        (2, CELL_TOO_LONG),
        (3, CELL_TOO_LONG),
        (4, ROW_TOO_LONG),
        "last",
    ]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
@pytest.mark.parametrize("list_of", [pa.list_, pa.large_list])
def test_every_type_of_text_that_parquet_has_is_read(
    tmp_path: Path, kind: pa.DataType, list_of: object
) -> None:
    assert callable(list_of)
    path = parquet(
        tmp_path,
        name=pa.array(["a", "b", None], kind),
        entityType=pa.nulls(3),
        observations=pa.array([["x", "y"], [], None], list_of(kind)),
    )

    first, second, third = rows_of(path)

    assert isinstance(first, NewEntity)
    assert isinstance(second, NewEntity)
    assert (first.name, first.properties["observations"]) == ("a", ("x", "y"))
    assert (second.name, second.properties["observations"]) == ("b", ())
    assert third == BadRow(line=3, reason="has no name")


def test_parquet_column_that_can_hold_no_text_is_refused(tmp_path: Path) -> None:
    path = parquet(tmp_path, name=pa.array(["a"]), observations=pa.array([{"x": "y"}]))

    with pytest.raises(RequestError, match="neither strings nor lists of strings: observations"):
        results(path)


def test_page_of_long_rows_ends_before_it_has_all_its_rows(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load, "PAGE_SIZE", 1_000)
    path = tmp_path / "entities.csv"
    rows = [f"thing {n},{'x' * 400}" for n in range(7)]
    path.write_text("\n".join(["name,observations", *rows]))
    seen: list[int] = []

    def on_page(so_far: LoadReport) -> None:
        seen.append(so_far.rows)

    report = load_file(world.services, path, on_page=on_page)

    assert seen == [3, 6, 7]
    assert report.created == 7 < PAGE
