"""Lease: order, exclusiveness, company, repeats (I3, I6, I9, I10)."""

from __future__ import annotations

import threading
from collections import Counter

from embed_pipeline.domain.job import JobStatus
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline_tests.clocks import HOUR, MINUTE, SECOND, FakeClock
from embed_pipeline_tests.contracts.job_store.scene import (
    MODEL,
    QueueBackend,
    add_jobs,
    failure,
    kinds,
    leased_job,
    request,
    stored,
    take,
)


class LeaseContract:
    def test_leased_job_is_locked_for_five_minutes(self, store: JobStore, clock: FakeClock) -> None:
        lease, job_id = leased_job(store, owner="worker-a")

        job = stored(store, job_id)
        assert (job.status, job.lock_owner) == (JobStatus.PROCESSING, "worker-a")
        assert job.lock_until == clock.now() + 5 * MINUTE
        assert lease.duration == 5 * MINUTE

    def test_leased_job_is_not_leased_again(self, store: JobStore) -> None:
        leased_job(store)

        assert take(store, owner="worker-b").jobs == ()

    def test_lease_takes_at_most_its_limit(self, store: JobStore) -> None:
        add_jobs(store, 5)

        assert len(take(store, 3).jobs) == 3
        assert take(store, 0).jobs == ()
        assert len(take(store, 10).jobs) == 2

    def test_higher_priority_goes_first_then_the_older(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        for uid, priority in [("low", 1), ("old", 5), ("new", 5), ("high", 9), ("none", 0)]:
            store.enqueue([request(uid, priority=priority)])
            clock.advance(SECOND)

        assert [job.entity_uid for job in take(store).jobs] == ["high", "old", "new", "low", "none"]

    def test_job_that_is_not_due_yet_waits(self, store: JobStore, clock: FakeClock) -> None:
        lease, job_id = leased_job(store)
        store.fail(lease, {job_id: failure()})

        early = take(store).jobs
        clock.advance(2 * SECOND)

        assert early == ()
        assert take(store).job_ids == (job_id,)

    def test_lease_takes_only_jobs_of_its_model(self, store: JobStore) -> None:
        store.enqueue([request("e1", model="openai/m@8"), request("e2")])

        assert [job.entity_uid for job in take(store).jobs] == ["e2"]
        assert [job.entity_uid for job in take(store, model="openai/m@8").jobs] == ["e1"]

    def test_repeated_lease_call_returns_the_same_jobs(self, store: JobStore) -> None:
        add_jobs(store, 5)
        first = store.lease(owner="worker-a", model=MODEL, limit=2, token="lost-answer")

        again = store.lease(owner="worker-a", model=MODEL, limit=2, token="lost-answer")

        assert again.job_ids == first.job_ids
        assert store.get_queue_status().processing == 2

    def test_repeated_lease_call_is_answered_while_halted(self, store: JobStore) -> None:
        add_jobs(store)
        first = store.lease(owner="worker-a", model=MODEL, limit=1, token="lost-answer")
        store.switch.halt("key revoked", seen=0)

        again = store.lease(owner="worker-a", model=MODEL, limit=1, token="lost-answer")

        assert again.job_ids == first.job_ids

    def test_lease_that_finds_nothing_appends_no_event(self, store: JobStore) -> None:
        take(store)

        assert kinds(store) == []

    def test_struck_jobs_travel_in_small_company(
        self, store: JobStore, backend: QueueBackend
    ) -> None:
        add_jobs(store, 40)
        for job in take(store, 40).jobs:
            backend.alter(job.id, status="pending", lock_until=None, strikes=2)

        assert len(take(store, 40).jobs) == 16

    def test_badly_struck_job_travels_alone(self, store: JobStore, backend: QueueBackend) -> None:
        add_jobs(store, 3)
        for job in take(store, 3).jobs:
            backend.alter(job.id, status="pending", lock_until=None, strikes=4)

        assert len(take(store, 10).jobs) == 1

    def test_suspects_and_innocents_do_not_travel_together(
        self, store: JobStore, backend: QueueBackend, clock: FakeClock
    ) -> None:
        add_jobs(store, 2, prefix="suspect")
        for job in take(store).jobs:
            backend.alter(job.id, status="pending", lock_until=None, strikes=4)
        clock.advance(SECOND)
        add_jobs(store, 5, prefix="innocent")

        batches = [[job.entity_uid for job in take(store, 10).jobs] for _ in range(3)]

        assert sorted(batches[:2]) == [["suspect0"], ["suspect1"]]
        assert batches[2] == [f"innocent{n}" for n in range(5)]

    def test_head_of_the_queue_decides_so_that_no_suspect_starves(
        self, store: JobStore, backend: QueueBackend, clock: FakeClock
    ) -> None:
        add_jobs(store, 1, prefix="suspect")
        (suspect,) = take(store).jobs
        backend.alter(suspect.id, status="pending", lock_until=None, strikes=4)
        clock.advance(HOUR)
        add_jobs(store, 100, prefix="newer")

        assert take(store, 10).job_ids == (suspect.id,)

    def test_eight_threads_lease_every_job_once(self, backend: QueueBackend) -> None:
        add_jobs(backend.open_store(), 1_000)
        taken: list[str] = []

        def drain(store: JobStore, owner: str) -> None:
            while jobs := take(store, 10, owner=owner).jobs:
                taken.extend(job.id for job in jobs)

        threads = [
            threading.Thread(target=drain, args=(backend.open_store(), f"worker-{n}"))
            for n in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert len(taken) == 1_000
        assert max(Counter(taken).values()) == 1

    def test_next_due_tells_the_oldest_pending_job_of_a_model(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        nothing = store.next_due(model=MODEL)
        born = clock.now()
        add_jobs(store)
        clock.advance(HOUR)
        store.enqueue([request("later", priority=9), request("other", model="openai/m@8")])

        assert nothing is None
        assert store.next_due(model=MODEL) == born

    def test_live_owners_are_those_with_a_lease_that_has_not_ended(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        leased_job(store, owner="dead", uid="e1")
        clock.advance(5 * MINUTE + SECOND)
        leased_job(store, owner="alive-1", uid="e2")
        leased_job(store, owner="alive-2", uid="e3")

        assert store.live_owners() == {"alive-1", "alive-2"}
