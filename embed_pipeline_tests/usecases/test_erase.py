"""erase: nothing of an entity is left, and what is out of reach is said."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from embed_pipeline.domain.job import EntityUid
from embed_pipeline.errors import EntityNotFound, InputRefused
from embed_pipeline.usecases.entities.erase import KEPT, OUT_OF_REACH, erase
from embed_pipeline.usecases.insight.why import why
from embed_pipeline_tests.worker.scene import World, entity, uid


def test_vector_jobs_and_error_texts_go_and_the_search_finds_nothing(world: World) -> None:
    world.fill(3)
    world.run()
    world.upsert(entity(1, "a text that the provider refuses"))
    world.provider.script.append(InputRefused("a secret of entity 1"))
    world.run()
    assert "secret" in repr(world.jobs_of(uid(1)))

    report = erase(world.services, uid(1))

    assert (report.jobs, report.vectors, report.left) == (2, 1, ())
    assert (report.deleted, report.out_of_reach) == (False, (KEPT, *OUT_OF_REACH))
    assert world.jobs_of(uid(1)) == []
    assert world.stored(uid(1)) is None
    assert world.is_embedded(uid(0))
    (diagnosis,) = why(world.services, key=uid(1))
    assert "was erased: it is never embedded again" in diagnosis.message


def test_lease_that_is_under_way_does_not_bring_the_vector_back(world: World) -> None:
    world.fill(2)

    def erase_meanwhile(_: Sequence[str]) -> None:
        erase(world.services, uid(0))

    world.provider.script.append(erase_meanwhile)
    report = world.run()

    assert (report.embedded, world.stored(uid(0))) == (1, None)
    assert world.jobs_of(uid(0)) == []


def test_loading_it_again_queues_nothing(world: World) -> None:
    world.fill(1)
    world.run()
    erase(world.services, uid(0))

    made = world.upsert(entity(0, "another text"))

    assert made.jobs.new_jobs == 0
    assert world.all_jobs == []
    assert len(world.provider.requests) == 1


def test_deleted_entity_is_gone(world: World) -> None:
    world.fill(1)
    world.run()

    report = erase(world.services, uid(0), delete=True)

    assert (report.deleted, report.left, report.out_of_reach) == (True, (), OUT_OF_REACH)
    assert world.graph.get_entity(uid(0)) is None


def test_jobs_of_an_entity_that_another_program_removed_go_too(world: World) -> None:
    world.fill(1)
    world.remove(uid(0))

    report = erase(world.services, uid(0))

    assert (report.jobs, report.deleted, report.left) == (1, False, ())


def test_unknown_key_is_refused_and_appends_no_event(world: World) -> None:
    with pytest.raises(EntityNotFound, match="No entity has the key 'nowhere'"):
        erase(world.services, EntityUid("nowhere"))

    assert world.services.jobs.events.recent() == ()
