"""Files as they come: whatever their columns, separators and types are."""

from __future__ import annotations

import gzip
import io
import json
import sys
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.errors import RequestError
from embed_pipeline.usecases.files import source
from embed_pipeline.usecases.files.columns import ColumnChoice
from embed_pipeline.usecases.files.formats import BadRow, excel_files, json_files
from embed_pipeline.usecases.files.load import load_file
from embed_pipeline_tests.usecases.files import rows_of
from embed_pipeline_tests.worker.scene import World

BOOK = NewEntity(
    uid=EntityUid("9"),
    name="Dune",
    entity_type="Novel",
    properties={"observations": ("Sand.", "1965")},
)
BOOKS = "isbn,title,genre,about,year,price\n9,Dune,Novel,Sand.,1965,5\n"
CHOICE = ColumnChoice(
    name="title", entity_type="genre", key="isbn", text=("title", "about", "year")
)


def books(path: Path, mapping: Collection | None = None) -> list[NewEntity | BadRow]:
    return list(
        rows_of(
            path,
            mapping,
            name="title",
            entity_type="genre",
            key="isbn",
            text=("title", "about", "year"),
        )
    )


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_separator_and_mark_of_a_csv_file_are_found(
    tmp_path: Path, separator: str, encoding: str
) -> None:
    path = tmp_path / "books.csv"
    path.write_bytes(BOOKS.replace(",", separator).encode(encoding))

    assert books(path) == [BOOK]


def test_separators_inside_quotes_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "books.csv"
    path.write_text('"a, b, c and d";name\nx;Dune\n')

    assert [row.name for row in rows_of(path) if isinstance(row, NewEntity)] == ["Dune"]


def test_name_and_type_are_embedded_once_and_other_texts_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "books.jsonl"
    path.write_text('{"title": "Dune", "year": 1965, "about": ["Sand.", "Spice."], "isbn": 9}\n')

    (row,) = books(path)

    assert isinstance(row, NewEntity)
    assert row.properties == {"observations": ("Sand.", "Spice.", "1965")}


def test_name_that_the_mapping_does_not_embed_is_a_text_if_it_is_chosen(tmp_path: Path) -> None:
    path = tmp_path / "books.csv"
    path.write_text(BOOKS)
    mapping = Collection(text=("observations",))

    (row,) = books(path, mapping)

    assert isinstance(row, NewEntity)
    assert row.properties == {"observations": ("Dune", "Sand.", "1965")}


def test_text_columns_need_one_property_to_become(tmp_path: Path) -> None:
    path = tmp_path / "books.csv"
    path.write_text(BOOKS)

    with pytest.raises(RequestError, match=r"the mapping has plot, review: name the columns"):
        books(path, Collection(text=("name", "plot", "review")))


def test_chosen_text_that_only_looks_like_a_list_is_a_text(tmp_path: Path) -> None:
    path = tmp_path / "books.csv"
    path.write_text("name,about\nDune,[sic] a remark\n")

    (row,) = rows_of(path, text=("about",))

    assert isinstance(row, NewEntity)
    assert row.properties == {"observations": "[sic] a remark"}


@pytest.mark.parametrize(
    ("columns", "proposal"),
    [
        (["isbn", "Title", "plot"], "--name Title --key isbn"),
        (["a", "b"], "--name a"),
        (
            ["id", "full name", "body", "kind"],
            "--name 'full name' --text body --type kind --key id",
        ),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_file_without_the_expected_columns_is_answered_with_flags(
    world: World, tmp_path: Path, columns: list[str], proposal: str, ending: str
) -> None:
    path = tmp_path / f"books.{ending}"
    row = dict.fromkeys(columns, "x")
    path.write_text(",".join(columns) + "\n" if ending == "csv" else json.dumps(row) + "\n")

    with pytest.raises(RequestError) as refused:
        load_file(world.services, path)

    assert f"has no column 'name'; it has: {', '.join(columns)}. " in str(refused.value)
    assert str(refused.value).endswith(f"for example: {proposal}")


def test_chosen_column_that_is_not_there_is_refused(world: World, tmp_path: Path) -> None:
    path = tmp_path / "books.csv"
    path.write_text(BOOKS)

    with pytest.raises(RequestError, match="has no column 'titel'; it has: isbn, title"):
        load_file(world.services, path, columns=ColumnChoice(name="titel"))


def test_standard_input_is_read_in_a_named_format(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    received = io.BufferedReader(io.BytesIO(gzip.compress(BOOKS.encode())))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(received))

    report = load_file(world.services, Path("-"), columns=CHOICE, file_format="csv")

    assert (report.created, report.ignored_columns) == (1, ["price"])
    assert world.text_of(EntityUid("9")) == "Dune\nNovel\nSand.\n1965"


def test_standard_input_without_a_format_is_refused(world: World) -> None:
    with pytest.raises(RequestError, match="--format csv, tsv, json"):
        load_file(world.services, Path("-"))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b'{"name": "a"}\n{"name": "b"}', "is not JSON, line 2: Extra data: say --format jsonl"),
        (b'[{"name": "a"}', "is not JSON, line 1: Expecting ',' delimiter"),
        (b'{"items": []}', "is not a list of JSON objects"),
        (b"\xff", "is not UTF-8 text"),
        (b"[" * 100_000, "is nested too deep"),
        (b"[" + b"1" * 5_000 + b"]", "has a number with too many digits"),
    ],
)
def test_unusable_json_is_one_sentence(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "books.json"
    path.write_bytes(content)

    with pytest.raises(RequestError, match=sentence):
        list(rows_of(path))


def test_json_that_is_too_large_is_sent_to_json_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_files, "LARGEST", 1024)
    path = tmp_path / "books.json"
    path.write_text(json.dumps([{"name": "x" * 2_000}]))

    with pytest.raises(RequestError, match=r"write it as JSON Lines"):
        list(rows_of(path))


def test_damaged_gzip_is_one_sentence_and_keeps_what_came_before(
    world: World, tmp_path: Path
) -> None:
    path = tmp_path / "books.csv.gz"
    path.write_bytes(gzip.compress(BOOKS.encode())[:-9])

    with pytest.raises(RequestError, match="is a damaged gzip file"):
        load_file(world.services, path, columns=CHOICE)


def test_copy_of_a_packed_file_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "LARGEST_COPY", 1024)
    path = tmp_path / "books.parquet.gz"
    path.write_bytes(gzip.compress(b"x" * 2_000))

    with pytest.raises(RequestError, match="GB when unpacked"):
        list(rows_of(path))


# -- Excel ------------------------------------------------------------------------------------


def workbook(path: Path, *rows: tuple[object, ...]) -> Path:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet()
    for row in rows:
        sheet.append(row)
    book.save(path)
    return path


def with_part(path: Path, name: str, content: bytes) -> Path:
    """The workbook with one part replaced."""
    with zipfile.ZipFile(path) as archive:
        parts = {each.filename: archive.read(each) for each in archive.infolist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for each, bytes_ in (parts | {name: content}).items():
            archive.writestr(each, bytes_)
    return path


def test_numbers_and_dates_of_a_workbook_are_texts(tmp_path: Path) -> None:
    day = datetime(1965, 8, 1, tzinfo=UTC).replace(tzinfo=None)
    path = workbook(
        tmp_path / "books.xlsx",
        (None, None),
        ("isbn", "title", "genre", None, "about", "year"),
        (9.0, 1984, None, "no header", 2.5, day),
        (),
        (10, None, "Novel"),
    )

    assert books(path) == [
        NewEntity(
            uid=EntityUid("9"),
            name="1984",
            properties={"observations": ("2.5", "1965-08-01T00:00:00")},
        ),
        BadRow(line=5, reason="has no title"),
    ]


@pytest.mark.parametrize("content", [b"", b"no workbook", BOOKS.encode()])
def test_file_that_is_no_workbook_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    pytest.importorskip("openpyxl")
    path = tmp_path / "books.xlsx"
    path.write_bytes(content)

    with pytest.raises(RequestError, match=r"is no \.xlsx workbook, or is damaged"):
        list(rows_of(path))


def test_empty_workbook_needs_a_header(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="its first sheet needs a header"):
        list(rows_of(workbook(tmp_path / "books.xlsx")))


SHEET = "xl/worksheets/sheet1.xml"
ROWS = b"<worksheet xmlns='http://schemas.openxmlformats.org/spreadsheetml/2006/main'><sheetData>%s"
CELL = b"<c t='inlineStr'><is><t>%s</t></is></c>"


@pytest.mark.parametrize(
    ("part", "content", "sentence"),
    [
        (SHEET, ROWS % (b"<row>" + CELL % (b"x" * 300_000)), "has a row of more than"),
        (SHEET, ROWS % (b"<row>" + CELL % b"x" * 10_000), "has a row of more than"),
        (SHEET, ROWS % b"<!-- </row> -->", "has declarations in its XML"),
        ("xl/sharedStrings.xml", b"x" * 300_000, "has a part of more than"),
        (
            SHEET,
            ROWS % (b"<row r='1'>" + CELL % b"name" + b"</row><row r='99999999'>" + CELL % b"a")
            + b"</row></sheetData></worksheet>",
            "has more than 1,000 rows",
        ),
    ],
    ids=["a long cell", "many cells", "a comment", "shared strings", "a far row"],
)
def test_workbook_that_unpacks_to_too_much_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str, content: bytes, sentence: str
) -> None:
    monkeypatch.setattr(excel_files, "LONGEST_ROW", 64 * 1024)
    monkeypatch.setattr(excel_files, "LARGEST_PART", 256 * 1024)
    monkeypatch.setattr(excel_files, "PIECE", 8 * 1024)
    monkeypatch.setattr(excel_files, "MOST_ROWS", 1_000)
    path = with_part(workbook(tmp_path / "books.xlsx", ("name",), ("a",)), part, content)

    with pytest.raises(RequestError, match=sentence):
        list(rows_of(path))


def test_long_workbook_of_common_rows_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(excel_files, "LONGEST_ROW", 1024)
    monkeypatch.setattr(excel_files, "PIECE", 512)
    rows = [(f"thing {number}",) for number in range(2_000)]
    path = workbook(tmp_path / "books.xlsx", ("name",), *rows)

    assert len(list(rows_of(path))) == 2_000
