"""refresh: programs that write by themselves name what they changed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.errors import StoreUnavailable
from embed_pipeline.usecases.entities import refresh as refresh_use_case
from embed_pipeline.usecases.entities.refresh import MOST_LISTED, RefreshReport, refresh
from embed_pipeline_tests.worker.conftest import Build
from embed_pipeline_tests.worker.scene import MODEL, NOTES_ONLY, World, entity, uid


def embedded(world: World, count: int) -> None:
    world.graph.create_entities([entity(number) for number in range(count)], model=MODEL)
    refresh(world.services, [uid(number) for number in range(count)])
    world.run()


def change(world: World, number: int, text: str) -> None:
    """Without a job: as a program does that knows only the graph."""
    new = NewEntity(uid=uid(number), name=f"entity {number}", properties={"observations": text})
    world.graph.upsert_entities([new], model=MODEL)


def test_changed_ones_are_queued_and_the_others_left_alone(world: World) -> None:
    embedded(world, 4)
    change(world, 1, "another text")
    world.graph.create_entities([entity(9)], model=MODEL)
    world.graph.soft_delete([uid(3)])

    report = refresh(world.services, [uid(0), uid(1), uid(3), "entity 9", "nowhere", uid(1)])

    assert report == RefreshReport(
        queued=2, unchanged=1, excluded=1, unknown=1, unknown_names=["nowhere"]
    )
    assert world.run().embedded == 2
    assert world.is_embedded(uid(1))
    again = refresh(world.services, [uid(1), "entity 9"])
    assert (again.unchanged, again.queued) == (2, 0)


def test_queued_before_is_queued_and_makes_no_second_job(world: World) -> None:
    embedded(world, 1)
    change(world, 0, "another text")

    first, second = refresh(world.services, [uid(0)]), refresh(world.services, [uid(0)])

    assert (first.queued, second.queued) == (1, 1)
    assert world.run().embedded == 1


def test_marker_says_afterwards_that_the_change_is_queued(world: World) -> None:
    embedded(world, 1)
    change(world, 0, "another text")
    assert world.graph.counts(model=MODEL).marked == 1

    refresh(world.services, [uid(0)])

    assert world.graph.counts(model=MODEL).marked == 0


def test_unreachable_queue_leaves_the_change_to_discovery(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded(world, 1)
    change(world, 0, "another text")

    def unreachable(*_: object, **__: object) -> None:
        raise StoreUnavailable("The queue cannot be reached.")

    monkeypatch.setattr(world.services.jobs, "enqueue", unreachable)
    report = refresh(world.services, [uid(0)])

    assert (report.queued, report.queue_reached) == (0, False)
    assert world.graph.counts(model=MODEL).marked == 1


def test_names_are_read_page_by_page(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refresh_use_case, "PAGE", 10)
    asked: list[int] = []

    def names() -> Iterator[str]:
        for number in range(35):
            asked.append(number)
            yield f"unknown {number}"

    report = refresh(world.services, names())

    assert (len(asked), report.unknown, len(report.unknown_names)) == (35, 35, MOST_LISTED)


def test_nothing_to_embed_is_told_apart(build: Build) -> None:
    world = build(mapping=NOTES_ONLY)
    embedded(world, 1)
    change(world, 0, " ")

    report = refresh(world.services, [uid(0)])

    assert report == RefreshReport(nothing_to_embed=1)
