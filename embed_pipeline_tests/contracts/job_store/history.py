"""Looking back over jobs, in order, a page at a time; cancelling pending ones, erasing all."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime

import pytest

from embed_pipeline.domain.job import ENTITY_GONE, EmbedJob, EntityUid, JobId, JobStatus
from embed_pipeline.ports.job_history import JobHistory
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline_tests.clocks import HOUR, MILLISECOND, SECOND, FakeClock
from embed_pipeline_tests.contracts.job_store.scene import (
    PERMANENT,
    TRANSIENT,
    QueueBackend,
    add_jobs,
    kinds,
    leased_job,
    request,
    stored,
    take,
)

MOST_PAGES = 100


def pages(turn: Callable[[EmbedJob | None], tuple[EmbedJob, ...]]) -> Iterator[EmbedJob]:
    last = None
    for _ in range(MOST_PAGES):
        page = turn(last)
        if not page:
            return
        yield from page
        last = page[-1]
    raise AssertionError("the pages never end")


def all_ended(history: JobHistory, since: datetime, *, limit: int) -> list[EmbedJob]:
    return list(pages(lambda last: history.ended(since=since, after=last, limit=limit)))


class HistoryContract:
    def test_ended_jobs_come_by_the_time_of_their_end_then_by_id(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        since = clock.now()
        add_jobs(store, 9)
        for _ in range(3):
            lease = take(store, 3)
            store.complete(lease, lease.job_ids[:2])
            store.fail(lease, {lease.job_ids[2]: PERMANENT})
            clock.advance(SECOND)

        found = store.history.ended(since=since)

        assert len(found) == 9
        assert sorted(found, key=lambda job: (job.processed_at, job.id)) == list(found)
        assert [job.status.value for job in found].count("failed") == 3

    @pytest.mark.parametrize("limit", [1, 2, 7, 100])
    def test_pages_of_ended_jobs_neither_repeat_nor_miss_any(
        self, store: JobStore, clock: FakeClock, limit: int
    ) -> None:
        since = clock.now()
        add_jobs(store, 12)
        for size in (5, 6, 1):
            lease = take(store, size)
            store.complete(lease, lease.job_ids[:-1])
            store.fail(lease, {lease.job_ids[-1]: PERMANENT})
            clock.advance(MILLISECOND)

        found = [job.id for job in all_ended(store.history, since, limit=limit)]

        assert found == [job.id for job in store.history.ended(since=since)]
        assert len(found) == len(set(found)) == 12

    def test_jobs_that_ended_before_are_left_out(self, store: JobStore, clock: FakeClock) -> None:
        lease, _ = leased_job(store, uid="early")
        store.complete(lease, lease.job_ids)
        clock.advance(MILLISECOND)
        since = clock.now()
        lease, late = leased_job(store, uid="late")
        store.complete(lease, lease.job_ids)

        assert [job.id for job in store.history.ended(since=since)] == [late]

    def test_a_page_never_begins_before_since(self, store: JobStore, clock: FakeClock) -> None:
        add_jobs(store, 2)
        lease = take(store, 2)
        store.complete(lease, lease.job_ids[:1])
        clock.advance(SECOND)
        store.complete(lease, lease.job_ids[1:])
        clock.advance(HOUR)
        first = stored(store, lease.job_ids[0])

        assert store.history.ended(since=clock.now(), after=first) == ()
        assert len(store.history.ended(since=clock.now() - 2 * HOUR, after=first)) == 1

    def test_jobs_that_have_not_ended_are_not_among_the_ended(
        self, store: JobStore, backend: QueueBackend, clock: FakeClock
    ) -> None:
        since = clock.now()
        add_jobs(store, 3)
        lease = take(store, 2)
        store.fail(lease, {lease.job_ids[0]: TRANSIENT})
        lease, timeless = leased_job(store, uid="timeless")
        store.complete(lease, [timeless])
        backend.alter(timeless, processed_at=None)

        assert store.history.ended(since=since) == ()

    @pytest.mark.parametrize("limit", [1, 3, 100])
    def test_a_walk_meets_every_job_once_by_id(self, store: JobStore, limit: int) -> None:
        add_jobs(store, 10)
        lease = take(store, 5)
        store.complete(lease, lease.job_ids[:2])

        walked = list(
            pages(lambda last: store.history.walk(after=last.id if last else None, limit=limit))
        )

        assert [job.id for job in walked] == sorted(job.id for job in walked)
        assert {job.entity_uid for job in walked} == {f"e{n}" for n in range(10)}

    @pytest.mark.parametrize("status", [JobStatus.COMPLETED, JobStatus.FAILED])
    def test_ended_jobs_of_one_status_are_no_others(
        self, store: JobStore, status: JobStatus
    ) -> None:
        add_jobs(store, 8)
        lease = take(store, 6)
        store.complete(lease, lease.job_ids[:2])
        store.fail(lease, dict.fromkeys(lease.job_ids[2:4], PERMANENT))

        ended = list(pages(lambda last: store.history.ended(after=last, limit=1, status=status)))

        assert [job.status for job in ended] == [status, status]
        assert ended == sorted(ended, key=lambda job: job.id)

    def test_parked_jobs_are_the_failed_ones_but_those_of_deleted_entities(
        self, store: JobStore, backend: QueueBackend, clock: FakeClock
    ) -> None:
        add_jobs(store, 8)
        lease = take(store, 7)
        store.complete(lease, lease.job_ids[:1])
        gone = replace(PERMANENT, fail_code=ENTITY_GONE)
        for job_id in lease.job_ids[1:4]:
            store.fail(lease, {job_id: PERMANENT})
            clock.advance(SECOND)
        store.fail(lease, dict.fromkeys(lease.job_ids[4:6], gone))
        backend.alter(lease.job_ids[2], fail_code="another")

        latest_first = [*reversed(lease.job_ids[1:4])]
        assert [job.id for job in store.history.parked()] == latest_first
        assert [job.id for job in store.history.parked(limit=2)] == latest_first[:2]
        assert store.history.count_parked() == 3

    def test_nothing_is_parked_in_a_queue_without_failures(self, store: JobStore) -> None:
        add_jobs(store, 2)

        assert store.history.parked() == ()
        assert store.history.count_parked() == 0

    def test_jobs_ahead_are_those_of_a_higher_priority_and_those_due_before(
        self, store: JobStore, clock: FakeClock
    ) -> None:
        add_jobs(store, 3)
        store.enqueue([request("other model", model="mock/other@8")])
        clock.advance(SECOND)
        store.enqueue([request("mine")])
        clock.advance(SECOND)
        store.enqueue(
            [request("later"), request("urgent", priority=9), request("idle", priority=0)]
        )
        (mine,) = store.history.of_entity(EntityUid("mine"))

        assert store.history.ahead_of(mine) == 4
        assert store.history.ahead_of(mine, limit=2) == 2

    def test_nothing_is_ahead_of_the_only_job(self, store: JobStore) -> None:
        add_jobs(store)
        (only,) = store.history.walk()

        assert store.history.ahead_of(only) == 0

    def test_an_entitys_jobs_come_newest_first(self, store: JobStore, clock: FakeClock) -> None:
        for version in ("v1", "v2", "v3"):
            store.enqueue([request("mine", version=version), request("other", version=version)])
            clock.advance(SECOND)

        found = store.history.of_entity(EntityUid("mine"))

        assert [job.version for job in found] == ["v3", "v2", "v1"]
        assert store.history.of_entity(EntityUid("mine"), limit=1) == found[:1]

    def test_an_entity_without_jobs_has_none(self, store: JobStore) -> None:
        add_jobs(store)

        assert store.history.of_entity(EntityUid("unheard-of")) == ()


class CancelContract:
    def test_all_pending_jobs_of_an_entity_are_deleted(self, store: JobStore) -> None:
        store.enqueue([request("mine", version=version) for version in ("v1", "v2")])
        store.enqueue([request("other")])
        mine = {job.id for job in store.history.of_entity(EntityUid("mine"))}

        cancelled = store.cancel(entity_uid=EntityUid("mine"))

        assert set(cancelled) == mine
        assert [job.entity_uid for job in store.history.walk()] == ["other"]

    def test_any_pending_jobs_up_to_the_limit_are_deleted(self, store: JobStore) -> None:
        add_jobs(store, 5)

        assert (len(store.cancel(limit=3)), len(store.cancel(limit=3))) == (3, 2)
        assert store.get_queue_status().total == 0

    def test_jobs_that_are_held_or_ended_are_never_touched(self, store: JobStore) -> None:
        add_jobs(store, 6)
        lease = take(store, 3)
        store.complete(lease, lease.job_ids[:1])
        store.fail(lease, {lease.job_ids[1]: PERMANENT})

        store.cancel()
        for uid in [job.entity_uid for job in lease.jobs]:
            assert store.cancel(entity_uid=uid) == ()

        status = store.get_queue_status()
        assert (status.pending, status.processing) == (0, 1)
        assert (status.completed, status.failed) == (1, 1)
        assert store.complete(lease, lease.job_ids[2:]).done == lease.job_ids[2:]

    def test_a_call_appends_one_event_that_names_the_jobs(self, store: JobStore) -> None:
        add_jobs(store, 3)

        cancelled = store.cancel()

        event, *_ = store.events.recent()
        assert kinds(store) == ["jobs.enqueued", "jobs.cancelled"]
        assert event.job_ids == cancelled
        assert store.counters.read()["jobs_cancelled"] == 3

    def test_a_call_that_finds_nothing_appends_no_event(self, store: JobStore) -> None:
        store.cancel()
        store.cancel(entity_uid=EntityUid("unheard-of"))

        assert kinds(store) == []

    def test_a_cancelled_entity_may_be_queued_anew(self, store: JobStore) -> None:
        store.enqueue([request()])
        (before,) = store.cancel()

        assert store.enqueue([request()]).new_jobs == 1
        (job,) = store.history.walk()
        assert (job.id == before, job.attempts) == (False, 0)

    def test_a_job_is_either_leased_or_cancelled_never_both(
        self, store: JobStore, backend: QueueBackend
    ) -> None:
        add_jobs(store, 300)
        leased: list[JobId] = []
        rival = backend.open_store()

        def lease_all() -> None:
            while jobs := take(rival, 7).job_ids:
                leased.extend(jobs)

        thread = threading.Thread(target=lease_all)
        thread.start()
        cancelled: list[JobId] = []
        while jobs := store.cancel(limit=5):
            cancelled.extend(jobs)
        thread.join()

        assert not set(leased) & set(cancelled)
        assert len(leased) + len(cancelled) == 300
        assert store.get_queue_status().processing == len(leased)

    def test_enqueueing_while_others_cancel_loses_nothing(
        self, store: JobStore, backend: QueueBackend
    ) -> None:
        rival = backend.open_store()
        over = threading.Event()

        def cancel_all() -> None:
            while not over.is_set():
                rival.cancel(limit=3)

        thread = threading.Thread(target=cancel_all)
        thread.start()
        try:
            for _ in range(30):
                store.enqueue([request(f"e{n}", force=True) for n in range(10)])
        finally:
            over.set()
            thread.join()
        store.enqueue([request(f"e{n}") for n in range(10)])

        assert store.get_queue_status().pending == 10


class EraseJobsContract:
    def test_every_job_of_the_entity_goes_whatever_its_status(self, store: JobStore) -> None:
        store.enqueue([request("mine", version=version) for version in ("v1", "v2", "v3", "v4")])
        lease = take(store, 3)
        store.complete(lease, lease.job_ids[:1])
        store.fail(lease, {lease.job_ids[1]: PERMANENT})
        store.enqueue([request("other")])
        mine = {job.id for job in store.history.of_entity(EntityUid("mine"))}

        erased = store.erase(EntityUid("mine"))

        assert set(erased) == mine
        assert len(mine) == 4
        assert [job.entity_uid for job in store.history.walk()] == ["other"]
        assert store.complete(lease, lease.job_ids[2:]).lost == lease.job_ids[2:]

    def test_event_names_no_entity(self, store: JobStore) -> None:
        store.enqueue([request("mine")])

        erased = store.erase(EntityUid("mine"))
        store.erase(EntityUid("unheard-of"))

        last, first, *_ = store.events.recent()
        assert kinds(store) == ["jobs.enqueued", "jobs.erased", "jobs.erased"]
        assert (first.job_ids, last.job_ids) == (erased, ())
        assert "mine" not in repr((first, last))
