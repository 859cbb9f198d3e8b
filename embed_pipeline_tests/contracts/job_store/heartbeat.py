"""Heartbeat: a living worker keeps its jobs, a former holder keeps nothing (I1)."""

from __future__ import annotations

from embed_pipeline.domain.health import MOST_NAMED, HealthStatus, Silence
from embed_pipeline.domain.recovery import QueuePolicy
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline_tests.clocks import MINUTE, SECOND, FakeClock
from embed_pipeline_tests.contracts.job_store.scene import (
    QueueBackend,
    add_jobs,
    leased_job,
    stored,
    take,
)


class HeartbeatContract:
    def test_heartbeat_keeps_a_long_job_from_other_workers(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        lease, job_id = leased_job(store, owner="worker-a")
        for _ in range(5):
            clock.advance(2 * MINUTE)
            settled = store.heartbeat(lease, [job_id])
            assert settled.done == (job_id,)
            assert store.recover_stale().jobs == ()

        assert take(store, owner="worker-b").jobs == ()
        assert stored(store, job_id).lock_owner == "worker-a"
        assert stored(store, job_id).lock_until == clock.now() + 5 * MINUTE

    def test_heartbeat_is_remembered(self, store: JobStore, clock: FakeClock) -> None:
        lease, job_id = leased_job(store)
        clock.advance(MINUTE)

        store.heartbeat(lease, [job_id])

        assert stored(store, job_id).last_heartbeat_at == clock.now()

    def test_heartbeat_after_recovery_reports_the_lost_lease(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        lease, job_id = leased_job(store)
        clock.advance(5 * MINUTE + SECOND)
        store.recover_stale()

        settled = store.heartbeat(lease, [job_id])

        assert (settled.done, settled.lost) == ((), (job_id,))

    def test_heartbeat_never_extends_the_lease_of_a_later_holder(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        lease, job_id = leased_job(store, owner="worker-a")
        clock.advance(5 * MINUTE + SECOND)
        store.recover_stale()
        take(store, owner="worker-a")
        until = stored(store, job_id).lock_until
        clock.advance(SECOND)

        settled = store.heartbeat(lease, [job_id])

        assert settled.lost == (job_id,)
        assert stored(store, job_id).lock_until == until

    def test_empty_heartbeat_runs_no_query(self, store: JobStore, backend: QueueBackend) -> None:
        lease, _ = leased_job(store)

        with backend.counting_queries() as queries:
            settled = store.heartbeat(lease, [])

        assert (queries, settled.done, settled.lost) == ([], (), ())


class SilenceContract:
    """With a lock of five minutes and a beat every two, silence begins after four."""

    def test_jobs_whose_worker_is_silent_are_named_while_their_lock_holds(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        lease, job_id = leased_job(store, owner="worker-a")
        clock.advance(MINUTE)
        leased_job(store, owner="worker-b", uid="e2")
        clock.advance(3 * MINUTE)
        before = store.silence()
        clock.advance(SECOND)

        silence = store.silence()

        assert before == Silence()
        assert (silence.count, silence.job_ids) == (1, (job_id,))
        assert (silence.workers, silence.longest) == (("worker-a",), 4 * MINUTE + SECOND)
        assert store.recover_stale().jobs == ()
        store.heartbeat(lease, [job_id])
        assert store.silence() == Silence()

    def test_silence_ends_with_the_lock_which_recovery_takes_over(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        leased_job(store)
        clock.advance(5 * MINUTE)
        at_the_end = store.silence()
        clock.advance(SECOND)

        assert at_the_end.count == 1
        assert store.silence() == Silence()
        assert len(store.recover_stale().jobs) == 1

    def test_health_names_silent_jobs_and_their_worker(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        add_jobs(store, MOST_NAMED + 5)
        lease = take(store, 100, owner="worker-a")
        clock.advance(4 * MINUTE + SECOND)

        report = store.health.report()

        assert (report.status, report.silent_jobs) == (HealthStatus.HEALTHY, MOST_NAMED + 5)
        assert len(report.silent_job_ids) == MOST_NAMED
        assert {*report.silent_job_ids} <= {*lease.job_ids}
        (reason,) = report.reasons
        assert "no heartbeat for 241 s of 25 processing jobs of worker-a" in reason

    def test_three_short_intervals_are_enough(
        self, backend: QueueBackend, clock: FakeClock
    ) -> None:
        store = backend.open_store(policy=QueuePolicy(heartbeat_interval=10 * SECOND))
        leased_job(store)
        clock.advance(30 * SECOND)
        before = store.silence().count
        clock.advance(SECOND)

        assert (before, store.silence().count) == (0, 1)
