"""Fail: a charged attempt, backoff, and the end at the last one."""

from __future__ import annotations

import pytest

from embed_pipeline.domain.job import JobStatus
from embed_pipeline.errors import ErrorCategory
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline_tests.clocks import DAY, MINUTE, SECOND, FakeClock
from embed_pipeline_tests.contracts.job_store.scene import (
    CRITICAL,
    PERMANENT,
    TRANSIENT,
    QueueBackend,
    add_jobs,
    leased_job,
    stored,
    take,
)


class FailContract:
    def test_transient_failure_is_retried_after_a_growing_backoff(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        lease, job_id = leased_job(store)
        waits = []
        for _ in range(2):
            store.fail(lease, {job_id: TRANSIENT})
            waits.append(stored(store, job_id).available_at - clock.now())
            clock.advance(10 * SECOND)
            lease = take(store)

        # 1 s, 2 s, 4 s …, each with up to a quarter more.
        for wait, base in zip(waits, (SECOND, 2 * SECOND), strict=True):
            assert base <= wait <= 1.25 * base

    def test_transient_failure_counts_an_attempt(self, store: JobStore) -> None:
        lease, job_id = leased_job(store)

        report = store.fail(lease, {job_id: TRANSIENT})

        job = stored(store, job_id)
        assert report.retried == (job_id,)
        assert (job.status, job.attempts, job.lock_owner) == (JobStatus.PENDING, 1, None)

    def test_third_transient_failure_of_three_is_final(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        lease, job_id = leased_job(store)
        for _ in range(2):
            store.fail(lease, {job_id: TRANSIENT})
            clock.advance(MINUTE)
            lease = take(store)

        report = store.fail(lease, {job_id: TRANSIENT})
        clock.advance(DAY)

        job = stored(store, job_id)
        assert report.failed == (job_id,)
        assert (job.status, job.attempts) == (JobStatus.FAILED, 3)
        assert take(store).jobs == ()

    def test_finally_failed_job_is_deleted_after_its_retention(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        lease, job_id = leased_job(store)
        store.fail(lease, {job_id: PERMANENT})
        clock.advance(14 * DAY + SECOND)

        report = store.cleanup(older_than=14 * DAY)

        assert (report.failed, store.get(job_id)) == (1, None)

    def test_permanent_failure_ends_the_job_at_once(self, store: JobStore) -> None:
        lease, job_id = leased_job(store)

        report = store.fail(lease, {job_id: PERMANENT})

        assert report.failed == (job_id,)
        assert stored(store, job_id).status is JobStatus.FAILED

    def test_failed_job_records_category_message_stack_and_attempt(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        lease, job_id = leased_job(store)

        store.fail(lease, {job_id: PERMANENT})

        (job,) = store.failed_jobs()
        assert job.id == job_id
        assert job.error_category is ErrorCategory.PERMANENT
        assert (job.error, job.error_type) == ("input refused", "ProviderUnavailable")
        assert job.error_stack is not None
        assert job.error_stack.startswith("Traceback")
        assert (job.attempts, job.processed_at) == (1, clock.now())

    def test_critical_error_is_no_jobs_failure(self, store: JobStore) -> None:
        lease, job_id = leased_job(store)

        with pytest.raises(ValueError, match="CRITICAL"):
            store.fail(lease, {job_id: CRITICAL})

        assert stored(store, job_id).attempts == 0

    def test_late_failure_of_a_recovered_job_is_refused(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        lease, job_id = leased_job(store)
        clock.advance(5 * MINUTE + SECOND)
        store.recover_stale()

        report = store.fail(lease, {job_id: PERMANENT})

        assert (report.failed, report.lost) == ((), (job_id,))
        assert stored(store, job_id).status is JobStatus.PENDING

    def test_repeated_failure_charges_once(self, store: JobStore) -> None:
        lease, job_id = leased_job(store)
        store.fail(lease, {job_id: TRANSIENT})

        store.fail(lease, {job_id: TRANSIENT})

        assert stored(store, job_id).attempts == 1

    def test_empty_failure_runs_no_query(self, store: JobStore, backend: QueueBackend) -> None:
        lease, _ = leased_job(store)

        with backend.counting_queries() as queries:
            report = store.fail(lease, {})

        assert (queries, report.failed) == ([], ())

    def test_failed_jobs_are_listed_by_category_latest_first(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        add_jobs(store, 3)
        lease = take(store, 3)
        for job_id in lease.job_ids:
            clock.advance(SECOND)
            store.fail(lease, {job_id: PERMANENT})

        latest_first = tuple(reversed(lease.job_ids))
        assert tuple(job.id for job in store.failed_jobs()) == latest_first
        assert tuple(job.id for job in store.failed_jobs(limit=1)) == latest_first[:1]
        assert store.failed_jobs(category=ErrorCategory.TRANSIENT) == ()

    def test_retried_failures_start_afresh(self, store: JobStore, backend: QueueBackend) -> None:
        lease, job_id = leased_job(store)
        store.fail(lease, {job_id: PERMANENT})
        backend.alter(job_id, attempts=3, recoveries=5, strikes=6)

        retried = store.retry_failed()

        job = stored(store, job_id)
        assert retried == (job_id,)
        assert (job.attempts, job.recoveries, job.strikes) == (0, 0, 0)
        assert (job.error, job.processed_at) == (None, None)
        assert take(store).job_ids == (job_id,)

    def test_retry_failed_takes_only_the_category_asked_for(self, store: JobStore) -> None:
        lease, job_id = leased_job(store)
        store.fail(lease, {job_id: PERMANENT})

        assert store.retry_failed(category=ErrorCategory.TRANSIENT) == ()
        assert store.retry_failed(category=ErrorCategory.PERMANENT) == (job_id,)

    def test_retry_of_many_is_many_small_transactions_with_an_event_each(
        self, store: JobStore
    ) -> None:
        add_jobs(store, 1_050)
        lease = take(store, 1_050)
        store.fail(lease, dict.fromkeys(lease.job_ids, PERMANENT))

        first = store.retry_failed(limit=1_020)
        rest = store.retry_failed()

        events = store.events.recent(kind="jobs.retried")
        assert [len(event.job_ids) for event in events] == [30, 20, 1_000]
        assert (len(first), len(rest)) == (1_020, 30)
        assert {*first, *rest} == set(lease.job_ids)
