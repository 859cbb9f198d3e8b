"""Cleanup: only what has ended, only when it is old enough (I8)."""

from __future__ import annotations

from embed_pipeline.domain.job import JobStatus
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline_tests.clocks import DAY, MILLISECOND, FakeClock
from embed_pipeline_tests.contracts.job_store.scene import (
    PERMANENT,
    QueueBackend,
    add_jobs,
    kinds,
    leased_job,
    stored,
    take,
)

RETENTION = 14 * DAY


class CleanupContract:
    def test_completed_and_failed_jobs_past_retention_are_deleted(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        add_jobs(store, 3)
        lease = take(store, 3)
        store.complete(lease, lease.job_ids[:2])
        store.fail(lease, {lease.job_ids[2]: PERMANENT})
        clock.advance(RETENTION + MILLISECOND)

        report = store.cleanup(older_than=RETENTION)

        assert (report.completed, report.failed) == (2, 1)
        assert store.get_queue_status().total == 0

    def test_younger_jobs_are_kept(self, store: JobStore, clock: FakeClock) -> None:
        lease, job_id = leased_job(store)
        store.complete(lease, [job_id])
        clock.advance(RETENTION)

        report = store.cleanup(older_than=RETENTION)

        assert report.jobs == 0
        assert stored(store, job_id).status is JobStatus.COMPLETED

    def test_pending_and_processing_jobs_are_never_deleted(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        add_jobs(store, 2)
        take(store, 1)
        clock.advance(100 * RETENTION)

        store.cleanup(older_than=RETENTION)

        status = store.get_queue_status()
        assert (status.pending, status.processing) == (1, 1)

    def test_ended_job_without_a_time_is_kept(
        self, store: JobStore, backend: QueueBackend, clock: FakeClock
    ) -> None:
        lease, job_id = leased_job(store)
        store.complete(lease, [job_id])
        backend.alter(job_id, processed_at=None)
        clock.advance(100 * RETENTION)

        store.cleanup(older_than=RETENTION)

        assert store.get(job_id) is not None

    def test_events_are_deleted_by_their_own_age(self, store: JobStore, clock: FakeClock) -> None:
        add_jobs(store)
        clock.advance(RETENTION + MILLISECOND)
        take(store)

        report = store.cleanup(older_than=RETENTION)

        assert report.events == 1
        assert kinds(store) == ["jobs.leased", "jobs.cleaned_up"]

    def test_cleanup_appends_its_counts(self, store: JobStore, clock: FakeClock) -> None:
        lease, job_id = leased_job(store)
        store.complete(lease, [job_id])
        clock.advance(RETENTION + MILLISECOND)

        store.cleanup(older_than=RETENTION)

        (event,) = store.events.recent(limit=1)
        assert (event.kind, event.facts["jobs"]) == ("jobs.cleaned_up", 1)

    def test_cleanup_with_nothing_to_do_appends_no_event(self, store: JobStore) -> None:
        store.cleanup(older_than=RETENTION)

        assert kinds(store) == []

    def test_thousands_are_deleted_in_one_call(self, store: JobStore, clock: FakeClock) -> None:
        add_jobs(store, 2_500)
        lease = take(store, 2_500)
        store.complete(lease, lease.job_ids)
        clock.advance(RETENTION + MILLISECOND)

        assert store.cleanup(older_than=RETENTION).completed == 2_500


class StatusContract:
    def test_queue_status_counts_exactly(self, store: JobStore) -> None:
        add_jobs(store, 10)
        lease = take(store, 6)
        store.complete(lease, lease.job_ids[:3])
        store.fail(lease, dict.fromkeys(lease.job_ids[3:5], PERMANENT))

        status = store.get_queue_status()

        assert (status.pending, status.processing) == (4, 1)
        assert (status.completed, status.failed, status.total) == (3, 2, 10)

    def test_time_is_the_databases(self, store: JobStore, clock: FakeClock) -> None:
        assert store.now() == clock.now()

    def test_unknown_job_is_none(self, store: JobStore) -> None:
        assert store.get("no-such-job") is None  # type: ignore[arg-type]
