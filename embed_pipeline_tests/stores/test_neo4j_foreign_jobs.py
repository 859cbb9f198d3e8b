"""Jobs of another program that hold our fields in other forms: taken in, or in nobody's way."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime

import pytest

from embed_pipeline.domain.job import Enqueued, EntityUid, FailureRecord, JobId, JobStatus
from embed_pipeline.errors import ErrorCategory
from embed_pipeline.stores.encoding import to_ms
from embed_pipeline.stores.neo4j.driver.database import Neo4jDatabase
from embed_pipeline.stores.neo4j.queue.backend import Neo4jQueue
from embed_pipeline.stores.neo4j.queue.job_store import Neo4jJobStore
from embed_pipeline.stores.neo4j.setup import schema
from embed_pipeline_tests.clocks import HOUR, FakeClock
from embed_pipeline_tests.contracts.job_store.scene import MODEL, add_jobs, request, stored, take
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.stores.test_neo4j_adoption import (
    ADD_JOBS,
    Adopt,
    adopt,
    queue,
    seeds_job,
)

__all__ = ["adopt", "queue"]

MOMENT = datetime(2024, 5, 1, tzinfo=UTC)
FLAKY = FailureRecord(category=ErrorCategory.TRANSIENT, error_type="Flaky", message="once more")

READABLE = [
    pytest.param(MOMENT, id="zoned"),
    pytest.param(MOMENT.replace(tzinfo=None), id="local"),
    pytest.param(date(2024, 5, 1), id="date"),
    pytest.param(float(to_ms(MOMENT)), id="float"),
]
UNREADABLE = [
    pytest.param("2024-05-01T00:00:00Z", id="iso"),
    pytest.param("soon", id="text"),
    pytest.param(True, id="bool"),
    pytest.param([1, 2], id="list"),
    pytest.param(to_ms(MOMENT) * 1_000, id="microseconds"),
    pytest.param(float("nan"), id="nan"),
]
MOMENTS = ["created_at", "available_at", "lock_until", "processed_at", "last_heartbeat_at"]
NUMBERS = ["attempts", "max_attempts", "priority", "strikes", "recoveries"]


def all_moments(value: object) -> dict[str, object]:
    return dict.fromkeys([*MOMENTS, "recovered_at"], value)


@pytest.fixture
def store(queue: Neo4jDatabase, clock: FakeClock) -> Neo4jJobStore:
    schema.prepare_queue(queue)
    return Neo4jJobStore(Neo4jQueue(queue, clock=clock))


class TestTakenIn:
    @pytest.mark.parametrize("value", READABLE)
    def test_a_moment_in_another_form_stays_that_moment(
        self, adopt: Adopt, clock: FakeClock, value: object
    ) -> None:
        store = adopt(seeds_job("a", clock, **all_moments(value)))

        due = store.next_due(model=MODEL)
        (job,) = take(store).jobs

        assert due == job.available_at == job.created_at == job.recovered_at == MOMENT

    @pytest.mark.parametrize("value", UNREADABLE)
    def test_what_is_no_moment_is_now(self, adopt: Adopt, clock: FakeClock, value: object) -> None:
        store = adopt(seeds_job("a", clock, **all_moments(value)))

        due = store.next_due(model=MODEL)
        (job,) = take(store).jobs

        assert due == job.available_at == job.created_at == clock.now()
        assert job.recovered_at is None

    @pytest.mark.parametrize("value", READABLE + UNREADABLE)
    def test_held_and_failed_jobs_are_recovered_and_shown(
        self, adopt: Adopt, clock: FakeClock, value: object
    ) -> None:
        moments = all_moments(value)
        store = adopt(
            seeds_job("a", clock, **moments, status="processing", lock_owner=7),
            seeds_job("b", clock, **moments, status="failed", error_category="odd", error=[1]),
        )
        clock.advance(HOUR)

        assert store.has_stale()
        assert [job.id for job in store.recover_stale().jobs] == ["a"]
        assert [job.id for job in store.failed_jobs()] == ["b"]
        assert store.retry_failed() == (JobId("b"),)
        assert set(take(store).job_ids) == {"a", "b"}

    @pytest.mark.parametrize("value", [0.0, -3, "none", date(2024, 5, 1), [1]])
    def test_a_number_in_another_form_fails_like_any_other(
        self, adopt: Adopt, clock: FakeClock, value: object
    ) -> None:
        numbers = dict.fromkeys(NUMBERS, value) | {"max_attempts": 3.0, "tier": value}
        store = adopt(seeds_job("a", clock, **numbers))
        lease = take(store)

        report = store.fail(lease, {JobId("a"): FLAKY})

        assert report.retried == ("a",)
        assert stored(store, JobId("a")).attempts == 1

    def test_is_taken_in_once(
        self, adopt: Adopt, queue: Neo4jDatabase, store: Neo4jJobStore, clock: FakeClock
    ) -> None:
        adopt(seeds_job("a", clock, **all_moments("soon"), attempts=0.0, priority="high"))
        add_jobs(store, 3)

        assert schema.prepare_queue(queue) == 0

    def test_what_an_earlier_version_took_in_as_it_was_is_set_right(
        self, adopt: Adopt, clock: FakeClock
    ) -> None:
        fields = {"tier": 0, "rank": -5, "available_at": MOMENT, "created_at": MOMENT}

        store = adopt(seeds_job("a", clock, **fields))

        assert store.next_due(model=MODEL) == MOMENT
        assert take(store).job_ids == (JobId("a"),)


STATUSES = (*JobStatus, "done", 5)

EVERY_CALL: list[Callable[[Neo4jJobStore], object]] = [
    lambda store: store.next_due(model=MODEL),
    lambda store: store.failed_jobs(),
    lambda store: store.live_owners(),
    lambda store: store.get_queue_status(),
    lambda store: [store.get(JobId(f"a-{status}")) for status in STATUSES],
    lambda store: store.history.ended(),
    lambda store: store.history.parked(),
    lambda store: store.history.walk(),
    lambda store: [store.history.of_entity(EntityUid(f"c-{status}")) for status in STATUSES],
    lambda store: store.enqueue([request(f"{kind}-{s}") for s in STATUSES for kind in "acd"]),
    lambda store: store.enqueue([request(f"a-{s}", force=True) for s in STATUSES]),
    lambda store: store.complete(lease := take(store), lease.job_ids),
    lambda store: store.fail(lease := take(store), dict.fromkeys(lease.job_ids, FLAKY)),
    lambda store: store.recover_owner("gone"),
    lambda store: store.has_stale(),
    lambda store: store.recover_stale(),
    lambda store: store.retry_failed(),
    lambda store: store.cancel(entity_uid=EntityUid("c-pending")),
    lambda store: store.cancel(),
]


def odd_jobs(value: object, clock: FakeClock) -> list[dict[str, object]]:
    """Of every status, with `value` wherever a moment or a number should be."""
    fields = all_moments(value) | dict.fromkeys(NUMBERS, value)
    fields |= {"lock_owner": "gone", "lease_token": "t", "again": "x", "force": value}
    fields |= {"rank": -5, "tier": 0, "error_category": "odd"}
    return [
        job
        for status in STATUSES
        for job in (
            seeds_job(f"a-{status}", clock, status=status, **fields),
            seeds_job(f"b-{status}", clock, status=status, **fields) | {"entity_uid": hash(status)},
            seeds_job(f"c-{status}", clock, status=status, **fields) | {"id": hash(status)},
            seeds_job(f"d-{status}", clock, status=status, **fields) | {"id": None},
        )
    ]


class TestNotYetTakenIn:
    """Whatever comes between set-up and the lease that adopts it, here with all our fields."""

    @pytest.mark.parametrize("value", READABLE + UNREADABLE)
    def test_no_call_raises_and_jobs_of_ours_go_on(
        self, neo4j_queue: BedServer, store: Neo4jJobStore, clock: FakeClock, value: object
    ) -> None:
        neo4j_queue.run(ADD_JOBS, jobs=odd_jobs(value, clock))
        add_jobs(store, 1)

        # A job of many strikes is leased alone, and may come first.
        leased = [job for _ in range(2) for job in take(store, 100).jobs]

        assert {"a-pending", "e0"} <= {job.entity_uid for job in leased}
        for call in EVERY_CALL:
            call(store)

    @pytest.mark.parametrize(
        "fields",
        [
            {"created_at": MOMENT},
            {"created_at": "soon"},
            {"tier": 0.0, "rank": -5.0, "available_at": MOMENT},
        ],
    )
    def test_the_next_lease_takes_it_in(
        self,
        neo4j_queue: BedServer,
        store: Neo4jJobStore,
        clock: FakeClock,
        fields: dict[str, object],
    ) -> None:
        neo4j_queue.run(ADD_JOBS, jobs=[seeds_job("a", clock, **fields)])

        leased = [take(store).job_ids for _ in range(2)]

        assert leased == [(JobId("a"),), ()]
        (event,) = store.events.recent(kind="jobs.adopted")
        assert event.job_ids == ("a",)

    def test_a_moment_of_another_type_hides_nothing_that_is_due(
        self, neo4j_queue: BedServer, store: Neo4jJobStore, clock: FakeClock
    ) -> None:
        theirs = seeds_job("a", clock, rank=-5, tier=0, available_at=MOMENT)
        neo4j_queue.run(ADD_JOBS, jobs=[theirs])
        add_jobs(store, 1)

        assert store.next_due(model=MODEL) == clock.now()

    def test_jobs_without_a_usable_id_are_not_leased_and_never_stale(
        self, neo4j_queue: BedServer, store: Neo4jJobStore, clock: FakeClock
    ) -> None:
        due = {"rank": -5, "tier": 0, "available_at": 1}
        held = {"status": "processing", "lock_owner": "gone", "lock_until": 1, "tier": 0}
        jobs = [
            seeds_job("a", clock, **due) | {"id": 1},
            seeds_job("b", clock, **held) | {"id": 2},
            seeds_job("c", clock, **held) | {"id": None},
        ]
        neo4j_queue.run(ADD_JOBS, jobs=jobs)

        assert take(store).job_ids == ()
        assert store.next_due(model=MODEL) is None
        assert store.recover_stale().jobs == ()
        assert not store.has_stale()

    def test_enqueue_of_its_key_leaves_a_job_without_a_usable_id_parked(
        self, neo4j_queue: BedServer, store: Neo4jJobStore, clock: FakeClock
    ) -> None:
        neo4j_queue.run(ADD_JOBS, jobs=[seeds_job("a", clock) | {"id": 1}])

        report = store.enqueue([request("a", force=True), request("b")])

        assert report.outcomes == (Enqueued.PARKED, Enqueued.CREATED)


END_LEASE = "MATCH (job:EmbedJob {id: $id}) SET job.lock_until = $end"


class TestLeaseOfOurs:
    """Another program writes the end of a lease in a form of its own."""

    @pytest.mark.parametrize("end", READABLE + UNREADABLE)
    def test_end_that_is_past_or_no_time_is_found_by_recovery(
        self, neo4j_queue: BedServer, store: Neo4jJobStore, end: object
    ) -> None:
        add_jobs(store, 3)
        _, job_id, _ = take(store).job_ids
        neo4j_queue.run(END_LEASE, id=job_id, end=end)

        assert store.has_stale()
        assert [job.id for job in store.recover_stale().jobs] == [job_id]
        assert not store.has_stale()

    def test_end_in_the_future_stays_that_time(
        self, neo4j_queue: BedServer, store: Neo4jJobStore, clock: FakeClock
    ) -> None:
        add_jobs(store, 1)
        (job_id,) = take(store).job_ids
        neo4j_queue.run(END_LEASE, id=job_id, end=clock.now() + HOUR)

        assert store.recover_stale().jobs == ()
        assert stored(store, job_id).lock_until == clock.now() + HOUR
        assert not store.has_stale()
        clock.advance(2 * HOUR)
        assert [job.id for job in store.recover_stale().jobs] == [job_id]
