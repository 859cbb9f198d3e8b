"""Heartbeat: a living worker keeps its jobs, a former holder keeps nothing (I1)."""

from __future__ import annotations

from embed_pipeline.ports.job_store import JobStore
from embed_pipeline_tests.clocks import MINUTE, SECOND, FakeClock
from embed_pipeline_tests.contracts.job_store.scene import (
    QueueBackend,
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
