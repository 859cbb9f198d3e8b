"""The audit: resumable, one at a time, recorded; and coverage, which tells what it found."""

from __future__ import annotations

from datetime import timedelta

import pytest

from embed_pipeline.usecases.entities import audit as audit_module
from embed_pipeline.usecases.entities.audit import AuditReport, audit
from embed_pipeline.usecases.insight.coverage import exact_coverage, quick_coverage
from embed_pipeline.worker.stop import Deadline
from embed_pipeline_tests.clocks import MINUTE, SECOND, FakeClock
from embed_pipeline_tests.worker.conftest import Build
from embed_pipeline_tests.worker.scene import MODEL, NOTES_ONLY, World, entity, uid


def test_pass_over_the_graph_is_recorded_and_told_by_coverage(
    world: World, clock: FakeClock
) -> None:
    world.fill(4)
    world.run()
    world.write_as_another_program(uid(2), "their words")

    before = quick_coverage(world.services)
    report = audit(world.services)
    clock.advance(MINUTE)
    after = quick_coverage(world.services)

    assert (before.stale, before.audit) == (0, None)
    assert (report.complete, report.counts.examined, report.counts.stale) == (True, 4, 1)
    assert (after.stale, after.embedded, after.percent) == (1, 4, 100.0)
    assert after.audit is not None
    assert after.audit.age == 60.0
    assert world.graph.counts(model=MODEL).marked == 1


def test_round_stops_in_time_and_the_next_one_continues(
    world: World, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_module, "PAGE", 3)
    world.fill(7)
    world.run()

    def one_round() -> AuditReport:
        deadline = Deadline(clock, limit=SECOND)
        return audit(world.services, deadline=deadline, on_page=lambda _: clock.advance(2 * SECOND))

    reports = [one_round() for _ in range(3)]

    assert [report.counts.examined for report in reports] == [3, 3, 1]
    assert [report.complete for report in reports] == [False, False, True]
    last = reports[-1].record.last
    assert last is not None
    assert last.counts.examined == 7
    assert last.duration == timedelta(seconds=4)
    assert audit(world.services).counts.examined == 7, "it starts again"


def test_interrupted_audit_loses_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_module, "PAGE", 3)
    world.fill(7)

    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audit(world.services, on_page=interrupt)
    rest = audit(world.services)

    assert (rest.counts.examined, rest.complete) == (4, True)
    assert rest.record.last is not None
    assert rest.record.last.counts.examined == 7


def test_one_audit_at_a_time(world: World) -> None:
    world.fill(1)
    world.jobs.named_leases.take("audit", owner="run-1", duration=MINUTE)

    report = audit(world.services)

    assert (report.busy, report.counts.examined, report.complete) == ("run-1", 0, False)


def test_coverage_is_of_what_can_be_embedded_and_reaches_100_percent(build: Build) -> None:
    world = build(mapping=NOTES_ONLY)
    world.create(entity(0), entity(1), entity(2, ""))
    world.graph.soft_delete([uid(1)])
    world.run()

    quick, exact = quick_coverage(world.services), exact_coverage(world.services)

    assert (quick.entities, quick.embedded, quick.nothing_to_embed) == (2, 1, 1)
    assert (quick.missing, quick.excluded, quick.percent) == (0, 1, 100.0)
    assert exact == quick


def test_graph_without_any_text_is_covered(build: Build) -> None:
    world = build(mapping=NOTES_ONLY)
    world.create(entity(0, ""))

    assert quick_coverage(world.services).percent == 100.0
