"""A look before a discovery run: no gap only where every entity was looked at."""

from __future__ import annotations

from collections.abc import Sequence

from embed_pipeline.domain.job import JobStatus
from embed_pipeline.errors import InputRefused
from embed_pipeline.usecases.entities.discover import discover
from embed_pipeline.usecases.insight.coverage import MOST_ASKED, has_gaps
from embed_pipeline.worker.packing import HARMLESS
from embed_pipeline_tests.worker.scene import MODEL, World, entity, uid


def refuse(texts: Sequence[str]) -> None:
    if texts != [HARMLESS.text]:
        raise InputRefused("refused")


def test_empty_graph_has_none(world: World) -> None:
    assert not has_gaps(world.services)


def test_embedded_queued_and_parked_entities_are_no_gaps(world: World) -> None:
    world.fill(2)
    world.run()
    world.provider.always = refuse
    world.create(entity(2))
    world.run()
    world.create(entity(3))

    assert not has_gaps(world.services)
    assert [world.job_of(uid(number)).status for number in (1, 2, 3)] == [
        JobStatus.COMPLETED,
        JobStatus.FAILED,
        JobStatus.PENDING,
    ]


def test_entity_without_a_job_is_a_gap_until_discovery_has_been_there(world: World) -> None:
    world.graph.create_entities([entity(0)], model=MODEL)

    before = has_gaps(world.services)
    discover(world.services)

    assert (before, has_gaps(world.services)) == (True, False)


def test_text_that_another_program_changed_is_a_gap_under_its_vector(world: World) -> None:
    world.fill(1)
    world.run()
    world.write_as_another_program(uid(0), "another text")

    assert has_gaps(world.services)


def test_job_of_an_earlier_text_does_not_count(world: World) -> None:
    world.fill(1)
    world.write_as_another_program(uid(0), "another text")

    assert has_gaps(world.services)


def test_completed_job_whose_vector_is_lost_does_not_count(world: World) -> None:
    world.fill(1)
    world.run()
    world.lose_vectors()

    assert has_gaps(world.services)


def test_restored_entity_whose_job_failed_because_it_was_gone_is_a_gap(world: World) -> None:
    world.fill(1)
    world.graph.soft_delete([uid(0)])
    world.run()
    world.graph.upsert_entities([entity(0)], model=MODEL)

    assert world.count(JobStatus.FAILED) == 1
    assert has_gaps(world.services)


def test_graph_that_is_larger_than_a_check_may_have_gaps(world: World) -> None:
    world.fill(10)
    world.run()

    assert has_gaps(world.services, most_read=10)
    assert not has_gaps(world.services, most_read=11)


def test_more_unembedded_entities_than_a_check_asks_for_are_taken_for_gaps(world: World) -> None:
    world.fill(MOST_ASKED)
    few = has_gaps(world.services)
    world.fill(1, first=MOST_ASKED)

    assert (few, has_gaps(world.services)) == (False, True)
