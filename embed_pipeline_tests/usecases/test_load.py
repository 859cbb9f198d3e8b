"""Loading a CSV file: what a row becomes, and what is refused with its line."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.errors import RequestError
from embed_pipeline.usecases.files.formats import BadRow
from embed_pipeline.usecases.files.load import MOST_LISTED, PAGE, LoadReport, load_file
from embed_pipeline_tests.usecases.files import rows_of
from embed_pipeline_tests.worker.scene import World

HEADER = ("uid", "name", "entityType", "observations")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "entities.csv"


def write(file: Path, *rows: Sequence[str], header: Sequence[str] = HEADER) -> None:
    with file.open("w", newline="", encoding="utf-8") as opened:
        csv.writer(opened).writerows([header, *rows])


def only_row(file: Path, mapping: Collection | None = None) -> NewEntity | BadRow:
    (row,) = rows_of(file, mapping)
    return row


def test_row_becomes_an_entity_with_its_own_key(file: Path) -> None:
    write(file, ("z1", " Zeer pot ", " Invention ", '["Cools.", "Needs sand."]'))

    assert only_row(file) == NewEntity(
        uid=EntityUid("z1"),
        name="Zeer pot",
        entity_type="Invention",
        properties={"observations": ("Cools.", "Needs sand.")},
    )


def test_key_is_derived_where_the_file_gives_none(file: Path) -> None:
    write(file, ("", "Zeer pot", "Invention", "Cools."))

    row = only_row(file)

    assert isinstance(row, NewEntity)
    assert row.uid is None
    assert row.properties == {"observations": "Cools."}


def test_byte_order_mark_line_ends_and_blank_lines_are_tolerated(file: Path) -> None:
    file.write_bytes("\ufeffname\r\nZeer pot\r\n\r\nÄther\r\n".encode())

    names = [row.name for row in rows_of(file) if isinstance(row, NewEntity)]

    assert names == ["Zeer pot", "Äther"]


def test_columns_follow_the_mapping(file: Path) -> None:
    mapping = Collection(
        key="id", name_property="title", type_property="kind", text=("title", "body")
    )
    write(file, ("7", "Loom", "Tool", "Weaves."), header=("id", "title", "kind", "body"))

    row = only_row(file, mapping)

    assert row == NewEntity(
        uid=EntityUid("7"), name="Loom", entity_type="Tool", properties={"body": "Weaves."}
    )


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ('["open', "has a list that is not JSON: Unterminated string starting at"),
        ("[sic] a remark", "has a list that is not JSON: Expecting value"),
        ('["text", 7]', "has a list with something else than strings"),
        ("[" * 100_000, "has a list with something else than strings"),
        (json.dumps(["\ud800"]), "Entity 'a': its text is not valid Unicode"),
        (f"[{'1' * 5_000}]", "has a list with something else than strings"),
    ],
)
def test_cell_that_no_store_could_keep_is_a_bad_row(file: Path, cell: str, reason: str) -> None:
    write(file, ("", "a", "Thing", cell))

    assert only_row(file) == BadRow(line=2, reason=reason)


def test_line_of_a_bad_row_counts_the_lines_of_long_cells(file: Path) -> None:
    write(file, ("", "a", "Thing", "two\nlines"), ("", "", "Thing", ""))

    _, bad = rows_of(file)

    assert bad == BadRow(line=4, reason="has no name")


def test_broken_quoting_ends_the_file_with_its_line(file: Path) -> None:
    file.write_text('name,observations\ngood,x\nbad,"x"y\nnever read,x\n')

    good, bad = rows_of(file)

    assert isinstance(good, NewEntity)
    assert isinstance(bad, BadRow)
    assert bad.line == 3
    assert bad.reason.endswith("the rest of the file was not read")


@pytest.mark.parametrize(
    ("poison", "reason"),
    [
        (("a\x00b", "poison", "Thing", ""), "NUL"),
        (("", "n" * 9_000, "Thing", ""), "its name is longer than 7,500 bytes"),
        (("k" * 9_000, "poison", "Thing", ""), "its key is longer than 7,500 bytes"),
        (("", "poison", "t" * 9_000, ""), "its type is longer than 7,500 bytes"),
    ],
    ids=["a NUL", "a long name", "a long key", "a long type"],
)
def test_one_bad_row_costs_no_other_row_of_its_page(
    world: World, file: Path, poison: tuple[str, str, str, str], reason: str
) -> None:
    write(file, ("1", "before", "Thing", ""), poison, ("2", "after", "Thing", ""))

    report = load_file(world.services, file)

    assert (report.rows, report.created, report.new_jobs, report.refused) == (3, 2, 2, 1)
    assert reason in report.bad[0].reason
    assert world.graph.get_entity(EntityUid("2")) is not None


def test_long_file_is_loaded_page_by_page(world: World, file: Path) -> None:
    write(file, *(("", f"thing {number}", "Thing", "") for number in range(2 * PAGE + 1)))
    seen: list[int] = []

    def on_page(so_far: LoadReport) -> None:
        seen.append(so_far.rows)

    report = load_file(world.services, file, on_page=on_page)

    assert seen == [PAGE, 2 * PAGE, 2 * PAGE + 1]
    assert report.created == report.new_jobs == len(world.all_jobs) == 2 * PAGE + 1


def test_report_carries_the_first_bad_rows_and_counts_all(world: World, file: Path) -> None:
    write(file, *(("", "", "Thing", "") for _ in range(PAGE + 10)))

    report = load_file(world.services, file)

    assert report.refused == PAGE + 10
    assert [row.line for row in report.bad] == list(range(2, MOST_LISTED + 2))


def test_same_entity_twice_in_one_file_is_one_entity_with_the_last_text(
    world: World, file: Path
) -> None:
    write(file, ("1", "thing", "Thing", "first"), ("1", "thing", "Thing", "last"))

    load_file(world.services, file)
    world.run()

    assert world.text_of(EntityUid("1")).endswith("last")
    assert world.is_embedded(EntityUid("1"))


def test_loading_again_changes_nothing_and_a_changed_row_queues_its_version(
    world: World, file: Path
) -> None:
    write(file, ("1", "a", "Thing", "x"), ("2", "b", "Thing", "x"))
    load_file(world.services, file)
    world.run()

    again = load_file(world.services, file)
    write(file, ("1", "a", "Thing", "y"), ("2", "b", "Thing", "x"))
    changed = load_file(world.services, file)

    assert (again.unchanged, again.new_jobs) == (2, 0)
    assert (changed.changed, changed.unchanged, changed.new_jobs) == (1, 1, 1)


def test_file_without_a_name_column_changes_nothing(world: World, file: Path) -> None:
    write(file, ("1", "Thing"), header=("uid", "entityType"))

    with pytest.raises(RequestError, match="has no column 'name'; it has: uid, entityType"):
        load_file(world.services, file)

    assert world.all_jobs == []
