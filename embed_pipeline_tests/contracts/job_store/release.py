"""Release and defer: giving jobs back costs nobody an attempt (I5)."""

from __future__ import annotations

from embed_pipeline.domain.job import JobStatus
from embed_pipeline.errors import ErrorCategory
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline_tests.clocks import MINUTE, SECOND, FakeClock
from embed_pipeline_tests.contracts.job_store.scene import (
    CRITICAL,
    TRANSIENT,
    QueueBackend,
    add_jobs,
    kinds,
    leased_job,
    request,
    stored,
    take,
)


class ReleaseContract:
    def test_seven_unstarted_of_ten_are_released_to_pending(self, store: JobStore) -> None:
        add_jobs(store, 10)
        lease = take(store, 10, owner="worker-a")
        unstarted = lease.job_ids[3:]

        released = store.release(lease, unstarted)

        jobs = [stored(store, job_id) for job_id in unstarted]
        assert released == 7
        assert {job.status for job in jobs} == {JobStatus.PENDING}
        assert {(job.lock_owner, job.lock_until, job.attempts) for job in jobs} == {(None, None, 0)}
        assert set(take(store, 10, owner="worker-b").job_ids) == set(unstarted)

    def test_release_ignores_jobs_leased_by_another_worker(self, store: JobStore) -> None:
        add_jobs(store, 6)
        of_a = take(store, 3, owner="worker-a")
        of_b = take(store, 3, owner="worker-b")
        mixed = [*of_a.job_ids[1:], of_b.job_ids[1]]

        released = store.release(of_a, mixed)

        assert released == 2
        assert stored(store, of_b.job_ids[1]).lock_owner == "worker-b"

    def test_empty_release_runs_no_query_and_returns_zero(
        self, store: JobStore, backend: QueueBackend
    ) -> None:
        lease, _ = leased_job(store)

        with backend.counting_queries() as queries:
            released = store.release(lease, [])

        assert (queries, released) == ([], 0)

    def test_releasing_twice_releases_once(self, store: JobStore) -> None:
        lease, job_id = leased_job(store)

        assert store.release(lease, [job_id]) == 1
        assert store.release(lease, [job_id]) == 0

    def test_release_of_unknown_jobs_releases_none(self, store: JobStore) -> None:
        lease, _ = leased_job(store)

        assert store.release(lease, ["no-such-job"]) == 0  # type: ignore[list-item]

    def test_released_job_keeps_its_place_in_the_queue(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        lease, job_id = leased_job(store, uid="first")
        clock.advance(MINUTE)
        store.enqueue([request("second")])

        store.release(lease, [job_id])

        assert take(store, 1).job_ids == (job_id,)

    def test_many_releases_never_exhaust_a_job(self, store: JobStore) -> None:
        add_jobs(store)
        for _ in range(10):
            lease = take(store)
            store.release(lease, lease.job_ids)

        (job,) = take(store).jobs
        assert (job.attempts, job.recoveries, job.strikes) == (0, 0, 0)

    def test_force_asked_while_held_survives_the_release(self, store: JobStore) -> None:
        lease, job_id = leased_job(store)
        store.enqueue([request("e1", force=True)])

        store.release(lease, [job_id])

        assert take(store).jobs[0].force

    def test_release_that_releases_nothing_appends_no_event(self, store: JobStore) -> None:
        lease, job_id = leased_job(store)
        store.release(lease, [job_id])

        store.release(lease, [job_id])

        assert kinds(store).count("jobs.released") == 1


class DeferContract:
    def test_deferred_job_records_the_error_and_charges_no_attempt(self, store: JobStore) -> None:
        lease, job_id = leased_job(store)

        settled = store.defer(lease, [job_id], error=CRITICAL)

        job = stored(store, job_id)
        assert settled.done == (job_id,)
        assert (job.status, job.attempts, job.strikes) == (JobStatus.PENDING, 0, 0)
        assert (job.error, job.error_category) == ("key revoked", ErrorCategory.CRITICAL)

    def test_struck_job_counts_the_strike(self, store: JobStore) -> None:
        lease, job_id = leased_job(store)

        store.defer(lease, [job_id], error=TRANSIENT, strike=True)

        assert (stored(store, job_id).strikes, stored(store, job_id).attempts) == (1, 0)

    def test_deferred_job_waits_for_its_delay_behind_the_next(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        add_jobs(store, 2)
        lease = take(store, 1)

        store.defer(lease, lease.job_ids, error=TRANSIENT, delay=10 * SECOND)

        assert lease.job_ids[0] not in take(store, 5).job_ids
        clock.advance(10 * SECOND)
        assert take(store, 5).job_ids == lease.job_ids

    def test_deferring_anothers_job_changes_nothing(self, store: JobStore) -> None:
        lease, job_id = leased_job(store)
        store.release(lease, [job_id])
        take(store, owner="worker-b")

        settled = store.defer(lease, [job_id], error=TRANSIENT, strike=True)

        assert settled.lost == (job_id,)
        assert stored(store, job_id).strikes == 0
