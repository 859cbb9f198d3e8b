"""Recovery: no job stays stuck, no live lease is stolen, no worker-killer goes on (I4, I5, I6)."""

from __future__ import annotations

from datetime import timedelta

from embed_pipeline.domain.health import HealthStatus
from embed_pipeline.domain.job import JobId, JobStatus
from embed_pipeline.domain.recovery import Fate, RecoveredJob
from embed_pipeline.errors import ErrorCategory
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline_tests.clocks import HOUR, MILLISECOND, MINUTE, SECOND, FakeClock
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

EXPIRY = 5 * MINUTE + SECOND


def crash(store: JobStore, clock: FakeClock) -> RecoveredJob:
    """Lease the only due job, let its lease end, and recover it."""
    (job,) = take(store, 1).jobs
    clock.advance(EXPIRY)
    (recovered,) = store.recover_stale().jobs
    assert recovered.id == job.id
    return recovered


class RecoverContract:
    def test_expired_processing_job_is_reset_to_pending(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        _, job_id = leased_job(store)
        clock.advance(EXPIRY)

        recovery = store.recover_stale()

        job = stored(store, job_id)
        assert [found.id for found in recovery.jobs] == [job_id]
        assert (job.status, job.lock_owner, job.lock_until) == (JobStatus.PENDING, None, None)
        assert take(store, owner="worker-b").job_ids == (job_id,)

    def test_recovery_keeps_the_attempt_count(self, store: JobStore, clock: FakeClock) -> None:
        lease, job_id = leased_job(store)
        store.fail(lease, {job_id: TRANSIENT})
        clock.advance(2 * SECOND)
        take(store)
        clock.advance(EXPIRY)

        store.recover_stale()

        assert stored(store, job_id).attempts == 1

    def test_recovery_returns_ids_with_their_previous_owners(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        _, of_a = leased_job(store, owner="worker-a", uid="e1")
        _, of_b = leased_job(store, owner="worker-b", uid="e2")
        clock.advance(EXPIRY)

        recovery = store.recover_stale()

        owners = {job.id: job.previous_owner for job in recovery.jobs}
        assert owners == {of_a: "worker-a", of_b: "worker-b"}
        assert recovery.previous_owners == ("worker-a", "worker-b")
        assert {job.silent_for for job in recovery.jobs} == {EXPIRY}

    def test_job_with_live_lease_is_not_recovered(self, store: JobStore, clock: FakeClock) -> None:
        _, job_id = leased_job(store)
        clock.advance(4 * MINUTE)

        recovery = store.recover_stale()

        assert recovery.jobs == ()
        assert stored(store, job_id).status is JobStatus.PROCESSING
        assert take(store).jobs == ()

    def test_lease_that_ends_this_very_moment_is_not_yet_expired(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        leased_job(store)
        clock.advance(5 * MINUTE)

        at_the_end = store.recover_stale().jobs
        clock.advance(MILLISECOND)

        assert at_the_end == ()
        assert len(store.recover_stale().jobs) == 1

    def test_processing_job_without_an_end_of_lease_is_recovered(
        self, store: JobStore, backend: QueueBackend
    ) -> None:
        _, job_id = leased_job(store)
        backend.alter(job_id, lock_until=None)

        recovery = store.recover_stale()

        assert [job.id for job in recovery.jobs] == [job_id]

    def test_recovery_never_revives_an_ended_job(
        self, store: JobStore, backend: QueueBackend, clock: FakeClock
    ) -> None:
        lease, job_id = leased_job(store)
        store.complete(lease, [job_id])
        backend.alter(job_id, lock_until=0)
        clock.advance(EXPIRY)

        assert store.recover_stale().jobs == ()
        assert stored(store, job_id).status is JobStatus.COMPLETED

    def test_extended_lease_is_not_taken_by_recovery(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        lease, job_id = leased_job(store)
        clock.advance(EXPIRY)
        store.heartbeat(lease, [job_id])

        assert store.recover_stale().jobs == ()

    def test_store_tells_whether_anything_is_stale(self, store: JobStore, clock: FakeClock) -> None:
        leased_job(store)
        before = store.has_stale()
        clock.advance(EXPIRY)

        assert (before, store.has_stale()) == (False, True)

    def test_recovery_with_nothing_to_do_appends_no_event(self, store: JobStore) -> None:
        store.recover_stale()

        assert kinds(store) == []

    def test_recovery_is_bounded_by_its_limit(self, store: JobStore, clock: FakeClock) -> None:
        add_jobs(store, 10)
        take(store, 10)
        clock.advance(EXPIRY)

        assert len(store.recover_stale(limit=4).jobs) == 4
        assert len(store.recover_stale().jobs) == 6

    def test_thousands_are_recovered_in_one_pass(self, store: JobStore, clock: FakeClock) -> None:
        add_jobs(store, 2_500)
        take(store, 2_500)
        clock.advance(EXPIRY)

        assert len(store.recover_stale().jobs) == 2_500

    def test_force_asked_while_held_survives_recovery(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        leased_job(store)
        store.enqueue([request("e1", force=True)])
        clock.advance(EXPIRY)

        store.recover_stale()

        assert take(store).jobs[0].force


class RecoverOwnerContract:
    def test_jobs_of_an_ended_run_are_recovered_before_their_lease_ends(
        self, store: JobStore
    ) -> None:
        _, dead = leased_job(store, owner="run-1", uid="e1")
        _, alive = leased_job(store, owner="run-2", uid="e2")

        recovery = store.recover_owner("run-1")

        assert [(job.id, job.previous_owner) for job in recovery.jobs] == [(dead, "run-1")]
        assert stored(store, dead).recoveries == 1
        assert stored(store, alive).status is JobStatus.PROCESSING

    def test_recovering_an_owner_twice_counts_once(self, store: JobStore) -> None:
        _, job_id = leased_job(store, owner="run-1")
        store.recover_owner("run-1")

        assert store.recover_owner("run-1").jobs == ()
        assert stored(store, job_id).recoveries == 1


class WorkerKillerContract:
    def test_first_recovery_is_leasable_at_once_later_ones_back_off(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        add_jobs(store)
        waits: list[timedelta] = []
        for _ in range(4):
            recovered = crash(store, clock)
            waits.append(stored(store, recovered.id).available_at - clock.now())
            clock.advance(HOUR)

        assert waits == [timedelta(0), 30 * SECOND, 2 * MINUTE, 10 * MINUTE]

    def test_job_that_keeps_killing_its_worker_is_failed_at_the_fifth_recovery(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        add_jobs(store)
        killer = self._crashed(store, clock, times=4)
        self._somebody_completes(store)

        recovered = crash(store, clock)

        job = stored(store, killer)
        assert recovered.fate is Fate.FAILED
        assert (job.status, job.error_category) == (JobStatus.FAILED, ErrorCategory.PERMANENT)
        assert (job.fail_code, job.fail_reason) == ("timeout", "lease_expired")
        assert (job.attempts, job.recoveries) == (0, 5)

    def test_when_every_run_dies_jobs_wait_and_health_is_critical(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        add_jobs(store)
        killer = self._crashed(store, clock, times=4)

        recovered = crash(store, clock)

        job = stored(store, killer)
        assert recovered.fate is Fate.WAITING
        assert (job.status, job.available_at) == (JobStatus.PENDING, clock.now() + 10 * MINUTE)
        assert store.health.report().status is HealthStatus.CRITICAL

    def test_first_completion_ends_the_alarm(self, store: JobStore, clock: FakeClock) -> None:
        add_jobs(store)
        self._crashed(store, clock, times=5)

        self._somebody_completes(store)

        assert store.health.report().status is HealthStatus.HEALTHY

    def test_waiting_ends_at_the_fifteenth_recovery(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        add_jobs(store)
        killer = self._crashed(store, clock, times=14)

        recovered = crash(store, clock)

        assert recovered.fate is Fate.FAILED
        assert stored(store, killer).status is JobStatus.FAILED

    def test_crash_strikes_every_job_that_was_in_the_lease(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        add_jobs(store, 3)
        lease = take(store, 3)
        clock.advance(EXPIRY)

        store.recover_stale()

        assert {stored(store, job_id).strikes for job_id in lease.job_ids} == {1}

    @staticmethod
    def _crashed(store: JobStore, clock: FakeClock, *, times: int) -> JobId:
        for _ in range(times):
            recovered = crash(store, clock)
            clock.advance(HOUR)
        return recovered.id

    @staticmethod
    def _somebody_completes(store: JobStore) -> None:
        store.enqueue([request("somebody", priority=9)])
        lease = take(store, 1)
        store.complete(lease, lease.job_ids)
