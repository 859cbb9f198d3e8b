"""Complete: only by the holder of the current lease, and once (I1, I10)."""

from __future__ import annotations

from embed_pipeline.domain.job import JobStatus
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline_tests.clocks import MINUTE, SECOND, FakeClock
from embed_pipeline_tests.contracts.job_store.scene import (
    TRANSIENT,
    QueueBackend,
    add_jobs,
    kinds,
    leased_job,
    request,
    stored,
    take,
)


class CompleteContract:
    def test_completed_job_is_ended_and_unlocked(self, store: JobStore, clock: FakeClock) -> None:
        lease, job_id = leased_job(store)
        clock.advance(SECOND)

        settled = store.complete(lease, [job_id])

        job = stored(store, job_id)
        assert (settled.done, settled.lost) == ((job_id,), ())
        assert (job.status, job.processed_at) == (JobStatus.COMPLETED, clock.now())
        assert (job.lock_owner, job.lock_until, job.lease_token) == (None, None, None)

    def test_late_completion_of_a_recovered_job_is_refused(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        lease, job_id = leased_job(store)
        clock.advance(5 * MINUTE + SECOND)
        store.recover_stale()

        settled = store.complete(lease, [job_id])

        assert (settled.done, settled.lost) == ((), (job_id,))
        assert stored(store, job_id).status is JobStatus.PENDING

    def test_former_self_of_a_worker_cannot_complete_what_it_leased_again(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        first, job_id = leased_job(store, owner="worker-a")
        clock.advance(5 * MINUTE + SECOND)
        store.recover_stale()
        take(store, owner="worker-a")

        settled = store.complete(first, [job_id])

        assert settled.lost == (job_id,)
        assert stored(store, job_id).status is JobStatus.PROCESSING

    def test_mixed_completion_reports_done_and_lost(self, store: JobStore) -> None:
        add_jobs(store, 3)
        lease = take(store, 3)
        store.release(lease, lease.job_ids[:1])

        settled = store.complete(lease, lease.job_ids)

        assert set(settled.done) == set(lease.job_ids[1:])
        assert settled.lost == lease.job_ids[:1]

    def test_repeated_completion_is_acknowledged_again(self, store: JobStore) -> None:
        lease, job_id = leased_job(store)
        store.complete(lease, [job_id])

        settled = store.complete(lease, [job_id])

        assert (settled.done, settled.lost) == ((job_id,), ())
        assert kinds(store).count("jobs.completed") == 1
        assert store.counters.read()["jobs_completed"] == 1

    def test_repeated_completion_of_a_job_asked_for_again_is_acknowledged(
        self, store: JobStore
    ) -> None:
        lease, job_id = leased_job(store)
        store.enqueue([request("e1")])
        store.complete(lease, [job_id])
        other = take(store, owner="worker-b")

        settled = store.complete(lease, [job_id])

        assert settled.done == (job_id,)
        assert store.complete(other, [job_id]).done == (job_id,)

    def test_completion_forgets_earlier_errors(self, store: JobStore, clock: FakeClock) -> None:
        lease, job_id = leased_job(store)
        store.fail(lease, {job_id: TRANSIENT})
        clock.advance(2 * SECOND)

        store.complete(take(store), [job_id])

        job = stored(store, job_id)
        assert (job.error, job.error_category, job.attempts) == (None, None, 1)

    def test_lease_that_expired_but_was_not_recovered_still_completes(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        lease, job_id = leased_job(store)
        clock.advance(6 * MINUTE)

        assert store.complete(lease, [job_id]).done == (job_id,)

    def test_empty_completion_runs_no_query(self, store: JobStore, backend: QueueBackend) -> None:
        lease, _ = leased_job(store)

        with backend.counting_queries() as queries:
            settled = store.complete(lease, [])

        assert (queries, settled.done) == ([], ())
