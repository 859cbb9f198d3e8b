"""Values of another form in stored jobs stop neither these jobs nor others.

A backend holds what its types and constraints allow, and refuses the rest.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embed_pipeline.domain.job import JobId, JobStatus
from embed_pipeline.domain.lease import Lease
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline_tests.clocks import DAY, MINUTE, SECOND, FakeClock
from embed_pipeline_tests.contracts.job_store.scene import (
    PERMANENT,
    TRANSIENT,
    QueueBackend,
    add_jobs,
    leased_job,
    request,
    stored,
    take,
)

EXPIRY = 5 * MINUTE + SECOND

TEXT, GARBAGE, FLOAT, FAR = "2026-01-31T12:00:00", "weird", 1_767_200_000_000.5, 2**62
TIMES = ("created_at", "available_at", "last_heartbeat_at", "recovered_at", "processed_at")
COUNTS = ("attempts", "max_attempts", "recoveries", "strikes", "again", "force")

MALFORMED = [
    *((name, value) for name in TIMES for value in (TEXT, GARBAGE, FLOAT, FAR)),
    *((name, value) for name in COUNTS for value in (GARBAGE, 7.5)),
    *(("error_category", value) for value in (GARBAGE, 7)),
    *((name, 7) for name in ("error", "error_stack", "fail_code")),
]

Names = dict[JobId, str]
"""Jobs, by what is wrong with them."""


def enqueue_each(store: JobStore) -> None:
    store.enqueue([request(f"{name} {value!r}") for name, value in MALFORMED])


def spoil_each(store: JobStore, backend: QueueBackend) -> Names:
    """Give each job its malformed value; those whose value is refused stay as they are."""
    names: Names = {job.id: job.entity_uid for job in store.history.walk()}
    values = {f"{name} {value!r}": {name: value} for name, value in MALFORMED}
    held = [backend.alter(job_id, **values[name]) for job_id, name in names.items()]
    assert sum(held) > 5
    return names


def leases(store: JobStore) -> Iterator[Lease]:
    """Until nothing is due: of jobs with many strikes each lease has one."""
    while (lease := take(store, 100)).jobs:
        yield lease


class MalformedJobContract:
    def test_stale_jobs_are_recovered_leased_and_completed(
        self, store: JobStore, backend: QueueBackend, clock: FakeClock
    ) -> None:
        enqueue_each(store)
        take(store, 100)
        names = spoil_each(store, backend)
        clock.advance(EXPIRY)

        recovered = store.recover_stale().jobs
        clock.advance(10 * MINUTE)
        done = [id_ for held in leases(store) for id_ in store.complete(held, held.job_ids).done]

        assert {names[job.id] for job in recovered} == {*names.values()}
        assert {names[job_id] for job_id in done} == {*names.values()}
        assert store.get_queue_status().completed == len(names)

    def test_held_jobs_are_listed_extended_failed_and_retried(
        self, store: JobStore, backend: QueueBackend
    ) -> None:
        enqueue_each(store)
        lease = take(store, 100)
        names = spoil_each(store, backend)

        listed = store.history.walk()
        extended = store.heartbeat(lease, lease.job_ids).done
        failed = store.fail(lease, dict.fromkeys(lease.job_ids, PERMANENT)).failed

        assert {job.status for job in listed} == {JobStatus.PROCESSING}
        assert {*extended} == {*failed} == {*names}
        assert {job.error for job in store.failed_jobs()} == {PERMANENT.message}
        assert {*store.retry_failed()} == {*names}

    def test_deferred_jobs_are_leased_again_and_retried(
        self, store: JobStore, backend: QueueBackend, clock: FakeClock
    ) -> None:
        enqueue_each(store)
        lease = take(store, 100)
        names = spoil_each(store, backend)

        store.defer(lease, lease.job_ids, error=TRANSIENT, strike=True)
        store.recover_stale()
        clock.advance(MINUTE)
        reports = [
            store.fail(held, dict.fromkeys(held.job_ids, TRANSIENT)) for held in leases(store)
        ]

        charged = [id_ for report in reports for id_ in (*report.retried, *report.failed)]
        assert {names[job_id] for job_id in charged} == {*names.values()}

    def test_pending_jobs_are_listed_and_leased(
        self, store: JobStore, backend: QueueBackend
    ) -> None:
        enqueue_each(store)
        names = spoil_each(store, backend)

        for job in store.history.walk():
            assert [job] == [*store.history.of_entity(job.entity_uid)] == [stored(store, job.id)]
            store.history.ahead_of(job)
        store.next_due(model=job.model)
        enqueue_each(store)  # a second enqueue reads them too
        store.recover_stale()

        taken = [job_id for held in leases(store) for job_id in held.job_ids]
        assert {names[job_id] for job_id in taken} == {*names.values()}

    def test_ended_jobs_are_listed_and_cleaned_up(
        self, store: JobStore, backend: QueueBackend, clock: FakeClock
    ) -> None:
        enqueue_each(store)
        lease = take(store, 100)
        store.complete(lease, lease.job_ids)
        names = spoil_each(store, backend)

        assert len(store.history.walk()) == len(names)
        store.recover_stale()
        assert len(store.history.ended()) == len(names)
        clock.advance(30 * DAY)
        assert store.cleanup(older_than=14 * DAY).completed == len(names)

    @pytest.mark.parametrize("value", [TEXT, GARBAGE, FAR])
    def test_lease_whose_end_is_no_time_is_recovered(
        self, store: JobStore, backend: QueueBackend, value: object
    ) -> None:
        _, job_id = leased_job(store)
        if backend.alter(job_id, lock_until=value):
            assert store.has_stale()
            assert [job.id for job in store.recover_stale().jobs] == [job_id]
        assert not store.has_stale()

    def test_pages_of_ended_jobs_come_to_an_end(
        self, store: JobStore, backend: QueueBackend
    ) -> None:
        add_jobs(store, 3)
        lease = take(store)
        store.complete(lease, lease.job_ids)
        backend.alter(lease.job_ids[2], processed_at=FAR)

        page = store.history.ended()

        assert store.history.ended(after=page[-1]) == ()
