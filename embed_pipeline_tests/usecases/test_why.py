"""Why an entity is not found, or when it will be: the reason, the sentence and what mends it."""

from __future__ import annotations

import pytest

from embed_pipeline.domain.diagnosis import Diagnosis, Reason, Remedy
from embed_pipeline.domain.embedding import VectorDefect
from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.domain.job import EntityUid, FailureRecord
from embed_pipeline.errors import ErrorCategory, RequestError
from embed_pipeline.usecases.insight.why import MOST_NAMESAKES, why
from embed_pipeline.worker.outcomes import entity_gone
from embed_pipeline_tests.clocks import HOUR, MINUTE, FakeClock
from embed_pipeline_tests.worker.conftest import Build
from embed_pipeline_tests.worker.scene import NOTES_ONLY, World, entity, uid

REFUSED = FailureRecord(
    category=ErrorCategory.PERMANENT, error_type="InputRefused", message="It was refused."
)
RESET = FailureRecord(
    category=ErrorCategory.TRANSIENT, error_type="ProviderUnavailable", message="connection reset"
)


def asked(world: World, number: int | str = 1) -> Diagnosis:
    (finding,) = why(world.services, key=uid(number))
    return finding


def fail(world: World, how: FailureRecord, *, times: int = 1) -> None:
    for attempt in range(times):
        lease = world.lease(token=f"fail {attempt}")
        world.jobs.fail(lease, dict.fromkeys(lease.job_ids, how))
        world.clock.advance(MINUTE)


def test_entity_with_a_vector_of_its_text_can_be_found(world: World) -> None:
    world.create(entity(1))
    world.run()

    finding = asked(world)

    assert (finding.reason, finding.findable, finding.defect) == (Reason.FOUND, True, None)
    assert "other entities are nearer" in finding.message


@pytest.mark.parametrize("name", ["entity 1", " entity 1\n"])
def test_entity_is_found_by_its_name(world: World, name: str) -> None:
    world.create(entity(1))

    (finding,) = why(world.services, name=name)

    assert finding.entity is not None
    assert finding.entity.uid == uid(1)


def test_unknown_name_and_key_are_reported_as_such(world: World) -> None:
    (by_name,), (by_key,) = (
        why(world.services, name="Nobody"),
        why(world.services, key=EntityUid("x")),
    )

    assert by_name.reason is by_key.reason is Reason.UNKNOWN
    assert by_name.message.startswith("No entity is named 'Nobody'")
    assert by_key.message.startswith("No entity has the key 'x'")
    assert "name" not in by_key.message


@pytest.mark.parametrize("name", [None, "", "  "])
def test_nothing_asked_is_refused(world: World, name: str | None) -> None:
    with pytest.raises(RequestError, match="name or a key"):
        why(world.services, name=name)


def test_namesakes_are_each_explained_and_deleted_ones_left_out(world: World) -> None:
    world.create(*(NewEntity(name="Mercury", uid=uid(n)) for n in range(MOST_NAMESAKES + 5)))
    world.create(NewEntity(name="Mercury", uid=uid(900)))
    world.graph.soft_delete([uid(0)])

    findings = why(world.services, name="Mercury")

    assert len(findings) == MOST_NAMESAKES
    assert uid(0) not in {f.entity.uid for f in findings if f.entity}


def test_deleted_entity_is_reported_with_the_time(world: World) -> None:
    world.create(entity(1))
    world.graph.soft_delete([uid(1)])

    (finding,) = why(world.services, name="entity 1")

    assert (finding.reason, finding.findable) == (Reason.DELETED, False)
    assert "was deleted on 2026-01-01 12:00 UTC" in finding.message


def test_entity_without_text_is_reported_with_its_empty_properties(build: Build) -> None:
    world = build(mapping=NOTES_ONLY)
    world.create(NewEntity(uid=uid(1), name="silent"))

    finding = asked(world)

    assert finding.reason is Reason.NO_TEXT
    assert "observations" in finding.message


def test_graph_of_another_model_is_reported(world: World) -> None:
    world.create(entity(1))
    world.graph.register_first_model("mock/other@4", dimensions=4)

    finding = asked(world)

    assert finding.reason is Reason.OTHER_MODEL
    assert "embedded with mock/other@4, but the settings say mock/mock@8" in finding.message
    assert "EMBEDDING_DIMENSIONS back" in finding.message


def test_queued_entity_is_reported_with_how_many_are_before_it_and_that_no_worker_runs(
    world: World, clock: FakeClock
) -> None:
    world.fill(3, first=10)
    clock.advance(MINUTE)
    world.create(entity(1))

    finding = asked(world)

    assert (finding.reason, finding.defect) == (Reason.WAITING, VectorDefect.MISSING)
    assert "with at most 3 jobs before it" in finding.message
    assert (finding.remedy, finding.due_at) == (Remedy.RUN, clock.now())


def test_queued_entity_needs_no_command_while_a_worker_runs(world: World) -> None:
    world.fill(2, first=10)
    world.lease()
    world.create(entity(1))

    finding = asked(world)

    assert (finding.reason, finding.remedy) == (Reason.WAITING, None)


@pytest.mark.parametrize("halted", [True, False])
def test_stopped_queue_is_reported_with_its_reason_and_resume(world: World, halted: bool) -> None:
    world.create(entity(1))
    if halted:
        world.jobs.switch.halt("the key was revoked", seen=0)
    else:
        world.jobs.switch.pause("the key was revoked")

    finding = asked(world)

    assert (finding.reason, finding.remedy) == (Reason.STOPPED, Remedy.RESUME)
    assert f"{'halted' if halted else 'paused'}: the key was revoked" in finding.message


def test_open_breaker_is_reported_with_the_time_of_the_next_try(
    world: World, clock: FakeClock
) -> None:
    world.create(entity(1))
    breaker = world.jobs.breakers.trip("mock", seen=0, error=RESET)

    finding = asked(world)

    assert (finding.reason, finding.due_at) == (Reason.HELD_UP, breaker.until)
    assert "mock does not answer (connection reset)" in finding.message


def test_spent_budget_is_reported_with_the_time_it_is_back(build: Build, clock: FakeClock) -> None:
    world = build(requests=1)
    world.create(entity(1))
    world.spend(1)

    finding = asked(world)

    assert finding.reason is Reason.HELD_UP
    assert "the budget is used up" in finding.message
    assert finding.due_at is not None
    assert finding.due_at > clock.now()


def test_job_that_waits_for_its_next_attempt_reports_when_and_why(world: World) -> None:
    world.create(entity(1))
    lease = world.lease()
    world.jobs.fail(lease, dict.fromkeys(lease.job_ids, RESET))

    finding = asked(world)

    assert (finding.reason, finding.due_at) == (
        Reason.WAITING,
        world.job_of(uid(1)).available_at,
    )
    assert "after an error (connection reset)" in finding.message


def test_entity_in_work_names_who_has_it(world: World) -> None:
    world.create(entity(1))
    world.lease(owner="run-7")

    finding = asked(world)

    assert finding.reason is Reason.IN_WORK
    assert "run-7 is embedding it" in finding.message


def test_entity_of_a_vanished_worker_is_fixed_by_recover(world: World, clock: FakeClock) -> None:
    world.create(entity(1))
    world.lease(owner="run-7")
    clock.advance(HOUR)

    finding = asked(world)

    assert (finding.reason, finding.remedy) == (Reason.ABANDONED, Remedy.RECOVER)


@pytest.mark.parametrize(
    ("how", "times", "says"),
    [
        (REFUSED, 1, "(PERMANENT) after 1 of 3 attempts"),
        (RESET, 3, "(TRANSIENT) after 3 of 3 attempts"),
    ],
)
def test_failed_job_reports_why_and_how_to_force_it(
    world: World, how: FailureRecord, times: int, says: str
) -> None:
    world.create(entity("my key"))
    fail(world, how, times=times)

    finding = asked(world, "my key")

    assert (finding.reason, finding.remedy) == (Reason.FAILED, Remedy.FORCE)
    assert says in finding.message
    assert how.message in finding.message


def test_entity_that_is_back_is_found_by_discovery(world: World) -> None:
    world.create(entity(1))
    fail(world, entity_gone())

    finding = asked(world)

    assert (finding.reason, finding.remedy) == (Reason.FAILED, Remedy.DISCOVER)


def test_entity_that_was_never_queued_is_fixed_by_discover(world: World) -> None:
    world.graph.create_entities([entity(1)], model=world.services.model)

    finding = asked(world)

    assert (finding.reason, finding.remedy) == (Reason.NOT_QUEUED, Remedy.DISCOVER)
    assert "has no job" in finding.message.lower()


def test_changed_text_is_still_found_by_its_earlier_one(world: World) -> None:
    world.create(entity(1))
    world.run()
    world.write_as_another_program(uid(1), "rewritten")

    finding = asked(world)

    assert (finding.reason, finding.defect) == (Reason.NOT_QUEUED, VectorDefect.STALE)
    assert finding.findable
    assert "only by an earlier text" in finding.message


def test_job_of_an_earlier_text_counts_as_under_way(world: World) -> None:
    world.create(entity(1))
    world.write_as_another_program(uid(1), "rewritten before anybody embedded it")

    assert asked(world).reason is Reason.WAITING


def test_asking_changes_nothing(world: World) -> None:
    world.create(entity(1), entity(2))
    before = world.all_jobs, world.jobs.events.recent()

    why(world.services, name="entity 1")
    why(world.services, name="nobody")

    assert (world.all_jobs, world.jobs.events.recent()) == before
    assert world.graph.models() == ()
