"""How many jobs are live, counted up to a limit; and named leases, held by one owner at a time."""

from __future__ import annotations

import threading

from embed_pipeline.domain.job import EntityUid, Live
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline_tests.clocks import MILLISECOND, MINUTE, FakeClock
from embed_pipeline_tests.contracts.job_store.scene import (
    MODEL,
    PERMANENT,
    QueueBackend,
    add_jobs,
    request,
    take,
)

SWEEP = "discovery"


class LiveContract:
    def test_models_of_pending_jobs_are_named_once_each(self, store: JobStore) -> None:
        none = store.pending_models()
        for model in ("mock/b@8", MODEL, "mock/a@8"):
            store.enqueue([request(f"{model} {number}", model=model) for number in range(3)])
        take(store, 3)

        assert none == ()
        assert store.pending_models() == ("mock/a@8", "mock/b@8")

    def test_live_jobs_follow_every_change(self, store: JobStore) -> None:
        def live() -> tuple[int, int]:
            counted = store.count_live(model=MODEL, limit=100)
            return counted.pending, counted.processing

        seen = [live()]
        add_jobs(store, 6)
        seen.append(live())
        lease = take(store, 4)
        seen.append(live())
        completed, failed, *released = lease.job_ids
        store.complete(lease, [completed])
        store.fail(lease, {failed: PERMANENT})
        store.release(lease, released[:1])
        seen.append(live())
        store.retry_failed()
        seen.append(live())
        store.recover_owner(lease.owner)
        seen.append(live())
        store.cancel(entity_uid=EntityUid("e5"))
        seen.append(live())

        assert seen == [(0, 0), (6, 0), (2, 4), (3, 1), (4, 1), (5, 0), (4, 0)]

    def test_pending_jobs_are_counted_up_to_the_limit_and_of_one_model(
        self, store: JobStore
    ) -> None:
        add_jobs(store, 5)
        store.enqueue([request("x", model="mock/other@8")])

        assert store.count_live(model=MODEL, limit=3).pending == 3
        assert store.count_live(model=MODEL, limit=9).pending == 5
        assert store.count_live(model="mock/other@8", limit=9) == Live(pending=1)

    def test_change_of_another_program_is_counted(
        self, backend: QueueBackend, store: JobStore
    ) -> None:
        add_jobs(store, 3)
        lease = take(store, 1)
        backend.alter(lease.job_ids[0], status="completed", processed_at=0)

        assert store.count_live(model=MODEL, limit=9) == Live(pending=2)

    def test_parked_jobs_are_counted_up_to_the_limit(self, store: JobStore) -> None:
        add_jobs(store, 4)
        lease = take(store, 4)
        store.fail(lease, dict.fromkeys(lease.job_ids, PERMANENT))

        assert [store.history.count_parked(limit=limit) for limit in (0, 3, 9)] == [0, 3, 4]
        assert store.history.count_parked() == 4


class NamedLeasesContract:
    def test_one_owner_at_a_time(self, backend: QueueBackend, store: JobStore) -> None:
        other = backend.open_store()

        first = store.named_leases.take(SWEEP, owner="run-1", duration=MINUTE)
        second = other.named_leases.take(SWEEP, owner="run-2", duration=MINUTE)
        elsewhere = other.named_leases.take("audit", owner="run-2", duration=MINUTE)

        assert (first.owner, second, elsewhere.owner) == ("run-1", first, "run-2")

    def test_lease_is_renewed_by_its_owner_and_taken_over_after_its_end(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        leases = store.named_leases
        leases.take(SWEEP, owner="run-1", duration=MINUTE)
        clock.advance(MINUTE / 2)
        leases.take(SWEEP, owner="run-1", duration=MINUTE)
        clock.advance(MINUTE)

        at_its_end = leases.take(SWEEP, owner="run-2", duration=MINUTE)
        clock.advance(MILLISECOND)
        after_its_end = leases.take(SWEEP, owner="run-2", duration=MINUTE)
        late = leases.take(SWEEP, owner="run-1", duration=MINUTE)

        assert (at_its_end.owner, after_its_end.owner, late.owner) == ("run-1", "run-2", "run-2")
        assert not leases.release(SWEEP, owner="run-1")

    def test_released_lease_is_free_at_once(self, store: JobStore) -> None:
        leases = store.named_leases
        leases.take(SWEEP, owner="run-1", duration=MINUTE)

        assert not leases.release(SWEEP, owner="run-2")
        assert leases.release(SWEEP, owner="run-1")
        assert leases.take(SWEEP, owner="run-2", duration=MINUTE).owner == "run-2"
        assert not leases.release(SWEEP, owner="run-1")

    def test_of_many_that_ask_at_once_one_gets_it(self, backend: QueueBackend) -> None:
        owners = [f"run-{n}" for n in range(6)]
        together = threading.Barrier(len(owners))
        granted: list[str] = []

        def ask(owner: str) -> None:
            store = backend.open_store()
            together.wait()
            lease = store.named_leases.take(SWEEP, owner=owner, duration=MINUTE)
            if lease.owner == owner:
                granted.append(owner)

        threads = [threading.Thread(target=ask, args=[owner]) for owner in owners]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert len(granted) == 1
