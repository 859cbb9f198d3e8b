"""Before any request: texts that moved on, entities that went, and nothing to embed."""

from __future__ import annotations

import pytest

from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.domain.health import HealthStatus
from embed_pipeline.domain.job import Enqueued, JobStatus
from embed_pipeline.errors import ErrorCategory
from embed_pipeline.usecases.entities.discover import discover
from embed_pipeline_tests.worker.conftest import Build
from embed_pipeline_tests.worker.scene import NOTES_ONLY, World, entity, uid


def test_text_changed_between_enqueue_and_embedding_is_never_sent_in_its_old_form(
    world: World,
) -> None:
    world.create(entity(0, "old"))
    world.write_as_another_program(uid(0), "new")

    report = world.run()

    assert world.provider.texts == ["entity 0\nnew"]
    assert world.has_vector_of(uid(0), "entity 0\nnew")
    assert (report.superseded, report.embedded) == (1, 1)
    assert [job.status for job in world.jobs_of(uid(0))] == [JobStatus.COMPLETED] * 2


def test_changed_text_queues_its_new_version_at_once_and_only_that_is_embedded(
    world: World,
) -> None:
    world.create(entity(0, "old"))
    world.upsert(entity(0, "new"))

    world.run()

    assert len(world.jobs_of(uid(0))) == 2
    assert world.provider.texts == ["entity 0\nnew"]
    assert world.count(JobStatus.COMPLETED) == 2


@pytest.mark.parametrize("how", ["soft delete", "removal"])
def test_job_of_a_vanished_entity_fails_for_good_without_a_call_or_harm_to_health(
    world: World, how: str
) -> None:
    world.fill(8)
    if how == "removal":
        for number in range(7):
            world.remove(uid(number))
    else:
        world.graph.soft_delete([uid(number) for number in range(7)])

    report = world.run()

    gone = world.job_of(uid(0))
    assert (gone.status, gone.error_category) == (JobStatus.FAILED, ErrorCategory.PERMANENT)
    assert (gone.fail_code, gone.fail_reason) == ("entity_gone", "EntityGone")
    assert (report.failed, report.embedded) == (7, 1)
    assert world.provider.texts == ["entity 7\nnote 7"]
    health = world.jobs.health.report()
    assert (health.status, health.consecutive_failures) == (HealthStatus.HEALTHY, 0)


def test_entity_restored_later_revives_its_job(world: World) -> None:
    world.fill(1)
    world.graph.soft_delete([uid(0)])
    world.run()

    report = world.upsert(entity(0))

    assert report.jobs.outcomes == (Enqueued.REVIVED,)
    assert world.run().embedded == 1
    assert world.is_embedded(uid(0))
    assert world.job_of(uid(0)).attempts == 0


def test_entity_restored_by_another_program_is_found_by_discovery(world: World) -> None:
    world.fill(1)
    world.graph.soft_delete([uid(0)])
    world.run()
    world.graph.backend.write(lambda tx: tx.all("UPDATE Entity SET validTo = NULL"))
    world.graph.audit_page(model=world.services.model, after=None, size=10)

    report = discover(world.services)

    assert (report.missing, report.new_jobs) == (1, 1)
    assert world.run().embedded == 1


@pytest.mark.parametrize("notes", [(), ("",), (" \n\t ", "")], ids=["none", "empty", "blank"])
def test_entity_without_text_gets_no_job(build: Build, notes: tuple[str, ...]) -> None:
    world = build(mapping=NOTES_ONLY)
    empty = NewEntity(uid=uid(0), name="named", properties={"observations": notes})

    report = world.create(empty, entity(1))
    world.run()

    assert (report.created, report.jobs.new_jobs) == (2, 1)
    assert not world.jobs_of(uid(0))
    assert world.provider.texts == ["note 1"]
    assert world.is_embedded(uid(1))


def test_text_emptied_after_enqueue_ends_its_job_without_an_error(build: Build) -> None:
    world = build(mapping=NOTES_ONLY)
    world.create(entity(0), entity(1))
    world.write_as_another_program(uid(0), "")

    report = world.run()

    assert (report.nothing_to_embed, report.embedded, report.failed) == (1, 1, 0)
    assert [job.status for job in world.jobs_of(uid(0))] == [JobStatus.COMPLETED]
    assert world.provider.texts == ["note 1"]
    assert world.jobs.health.report().status is HealthStatus.HEALTHY
    assert world.jobs.history.count_parked() == 0


def test_text_emptied_while_it_is_embedded_ends_its_job_without_an_error(build: Build) -> None:
    world = build(mapping=NOTES_ONLY)
    world.create(entity(0))
    world.provider.always = lambda texts: world.write_as_another_program(uid(0), "")

    report = world.run()

    assert (report.superseded, report.failed) == (1, 0)
    assert [job.status for job in world.jobs_of(uid(0))] == [JobStatus.COMPLETED]
    assert not world.is_embedded(uid(0))


def test_empty_text_that_is_filled_later_is_a_new_version_and_embedded(build: Build) -> None:
    world = build(mapping=NOTES_ONLY)
    world.create(NewEntity(uid=uid(0), name="named"))
    world.run()

    world.upsert(entity(0, "words"))

    assert world.run().embedded == 1
    assert world.has_vector_of(uid(0), "words")
