"""What must be true of the data of version 0.1 once this version has taken them over.

`make_old_data.py` tells their story: `e07` is both the key of entity 7 and its job's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from embed_pipeline import wiring
from embed_pipeline.domain.breaker import Breaker
from embed_pipeline.domain.control import SwitchState
from embed_pipeline.domain.job import EmbedJob, EntityUid, JobStatus
from embed_pipeline.domain.partition import PartitionCounts
from embed_pipeline.errors import ErrorCategory
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.settings import Settings
from embed_pipeline.worker.run import drain
from embed_pipeline_tests.clocks import HOUR, MINUTE, SECOND, FakeClock
from embed_pipeline_tests.contracts.entity_store.scene import coverage_of
from embed_pipeline_tests.neo4j_bed.client import BedServer

OLD_DATA = Path(__file__).parent
MODEL = "mock/mock@4"
VARIABLES = {"EMBED_ENV": "test", "EMBEDDING_DIMENSIONS": "4"}
NOW = datetime(2026, 3, 2, 18, 23, 48, tzinfo=UTC)
"""When the story ends."""

HAD_NO_TEXT = {
    "error": "The entity has no text to embed.",
    "error_type": "EmptyText",
    "fail_reason": "EmptyText",
}
"""As 0.1 failed such a job."""

JOBS = {
    "completed": ["e01", "e13", "e16"],
    "failed": ["e07", "e08", "e09", "e12"],
    "pending": ["e02", "e03", "e04", "e10", "e11", "e13", "e17", "e18", "e19"],
    "processing": ["e05", "e06", "e15"],
}
COUNTERS = {
    "entities_embedded": 5,
    "jobs_completed": 5,
    "jobs_deferred": 8,
    "jobs_enqueued": 21,
    "jobs_failed": 4,
    "jobs_leased": 63,
    "jobs_recovered": 14,
    "jobs_released": 26,
    "jobs_retried": 3,
    "tokens_used": 700,
}
EVENTS = 99
EMBEDDED = ["e01", "e02", "e13", "e15"]
"""Those that are valid; e13 has another text by now, e16 was deleted."""
MISSING = ["e03", "e04", "e05", "e06", "e07", "e08", "e10", "e11", "e12", "e14"]
MISSING += ["e17", "e18", "e19", "e20"]


class MigrationContract:
    """`settings` name stores that hold the old data, brought up in the way of their kind."""

    @pytest.fixture
    def clock(self) -> FakeClock:
        return FakeClock(NOW)

    @pytest.fixture
    def jobs(self, settings: Settings, clock: FakeClock) -> Iterator[JobStore]:
        with closing(wiring.open_job_store(settings, clock=clock)) as store:
            yield store

    @pytest.fixture
    def graph(self, settings: Settings, clock: FakeClock) -> Iterator[EntityStore]:
        with closing(wiring.open_entity_store(settings, clock=clock)) as store:
            yield store

    def test_every_job_is_there_as_it_was(self, jobs: JobStore) -> None:
        found = jobs.history.walk()

        assert by_status(found) == JOBS
        known = {str(job.entity_uid): job for job in found}
        assert known["e02"].force
        assert known["e04"].attempts == 1
        assert (known["e10"].strikes, known["e11"].strikes) == (2, 4)
        assert known["e05"].lock_owner == "worker-2"
        assert known["e07"].error_category is ErrorCategory.PERMANENT
        assert known["e08"].error_category is ErrorCategory.TRANSIENT
        assert known["e17"].error_category is ErrorCategory.CRITICAL
        assert (known["e09"].fail_code, known["e12"].fail_code) == ("entity_gone", "timeout")
        assert known["e18"].priority == 9
        assert jobs.next_due(model=MODEL) is not None

    def test_switch_breaker_health_events_and_counters_are_kept(self, jobs: JobStore) -> None:
        switch, breaker = jobs.switch.read(), jobs.breakers.read("mock")

        assert (switch.state, switch.reason) == (SwitchState.PAUSED, "Until tomorrow.")
        assert breaker == Breaker(
            name="mock",
            generation=1,
            level=1,
            until=NOW + SECOND,
            reason="The provider did not answer.",
        )
        assert jobs.health.report().consecutive_failures == 7
        assert len(jobs.events.recent(limit=1_000)) == EVENTS
        assert dict(jobs.counters.read()) == COUNTERS

    def test_every_job_is_leased_recovered_and_cleaned_up(
        self, jobs: JobStore, clock: FakeClock
    ) -> None:
        assert jobs.lease(owner="new", model=MODEL, limit=9, token="paused").jobs == ()
        jobs.switch.resume("It is tomorrow.")
        jobs.breakers.close("mock", seen=1)

        assert recovered(jobs) == ["e06"], "the others are held"
        due = [uid for uid in (*JOBS["pending"], "e06") if uid != "e19"]
        assert complete_all(jobs) == sorted(due)

        clock.advance(10 * MINUTE)
        assert recovered(jobs) == ["e05", "e15"]
        assert complete_all(jobs) == ["e05", "e15"]

        clock.advance(HOUR)
        assert complete_all(jobs) == ["e19"]

        assert len(jobs.retry_failed()) == len(JOBS["failed"])
        assert complete_all(jobs) == JOBS["failed"]

        clock.advance(SECOND)
        assert jobs.cleanup(older_than=timedelta(0)).jobs == 19
        assert jobs.history.walk() == ()

    def test_what_was_embedded_stays_embedded(self, graph: EntityStore) -> None:
        counts = graph.counts(model=MODEL)
        coverage = coverage_of(graph, model=MODEL)
        missing = graph.entities_without_embeddings(100, model=MODEL).entities
        versions = graph.embedded_versions([EntityUid(uid) for uid in EMBEDDED], model=MODEL)

        assert counts == PartitionCounts(entities=20, embedded=4, excluded=2, marked=15)
        assert counts.missing == len(MISSING)
        assert (coverage.entities, coverage.embedded, coverage.stale) == (18, 3, 1)
        assert sorted(entity.uid for entity in missing) == MISSING
        assert [entity.uid for entity in graph.changed_entities(model=MODEL, limit=10)] == ["e13"]
        assert sorted(versions) == EMBEDDED
        assert [record.model for record in graph.models()] == [MODEL]
        assert graph.cursor("sweep") == "e07"

    def test_a_run_embeds_what_is_missing_and_nothing_again(self, settings: Settings) -> None:
        services = wiring.open_services(settings)
        with closing(services.jobs), closing(services.graph), closing(services.limiter):
            services.jobs.switch.resume("It is tomorrow.")
            services.jobs.recover_stale()

            report = drain(services, owner="new")

            # Their leases and waits are long over by the clock of today; 2 and 15 were forced.
            done = sorted({*JOBS["pending"], *JOBS["processing"]})
            assert report.embedded == len(done)
            coverage = coverage_of(services.graph, model=MODEL)
            assert (coverage.embedded, coverage.stale) == (len({*EMBEDDED, *done}), 0)


def check_job_without_text(jobs: JobStore) -> None:
    """The job of e07 was failed by 0.1 because its entity had no text."""
    found = jobs.history.walk()
    (job,) = [job for job in found if job.entity_uid == "e07"]

    assert (job.status, job.error, job.error_type) == (JobStatus.COMPLETED, None, None)
    assert job.processed_at == NOW.replace(day=1, hour=12, minute=0, second=4)
    assert len(by_status(found)["failed"]) == len(JOBS["failed"]) - 1
    event, *older = jobs.events.recent(limit=1_000)
    assert (event.kind, event.reason, event.job_ids) == (
        "jobs.completed",
        "nothing to embed",
        (job.id,),
    )
    assert len(older) == EVENTS


def load_into_neo4j(queue: BedServer, graph: BedServer) -> None:
    """Empty both servers, and fill them with the old data."""
    for name, server in (("queue", queue), ("graph", graph)):
        server.wipe_schema()
        for statement in (OLD_DATA / f"{name}.cypher").read_text().splitlines():
            server.run(statement)
        server.run("CALL db.awaitIndexes(60)")


def by_status(jobs: tuple[EmbedJob, ...]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for job in jobs:
        found.setdefault(job.status.value, []).append(job.entity_uid)
    return {status: sorted(found[status]) for status in sorted(found)}


def recovered(jobs: JobStore) -> list[str]:
    return sorted(job.entity_uid for job in jobs.recover_stale().jobs)


def complete_all(jobs: JobStore) -> list[str]:
    """The entities of all jobs that are due."""
    done: list[str] = []
    while (lease := jobs.lease(owner="new", model=MODEL, limit=9, token=f"{len(done)}")).jobs:
        jobs.complete(lease, lease.job_ids)
        done += [job.entity_uid for job in lease.jobs]
    return sorted(done)
