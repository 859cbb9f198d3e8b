"""Jobs that another program left: they live as ours do, and set-up tells of those that cannot."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from embed_pipeline.domain.job import JobId, JobStatus
from embed_pipeline.stores.encoding import to_ms
from embed_pipeline.stores.neo4j.driver.database import Neo4jDatabase
from embed_pipeline.stores.neo4j.queue.adoption import sentences_on_jobs_left
from embed_pipeline.stores.neo4j.queue.backend import Neo4jQueue
from embed_pipeline.stores.neo4j.queue.job_store import Neo4jJobStore
from embed_pipeline.stores.neo4j.setup import schema
from embed_pipeline.stores.queue.maintenance import PAGE
from embed_pipeline_tests.clocks import DAY, SECOND, FakeClock
from embed_pipeline_tests.contracts.job_store.scene import MODEL, request, stored, take
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.stores.neo4j_queue import connect

ADD_JOBS = "UNWIND $jobs AS job CREATE (j:EmbedJob) SET j = job"

RETENTION = 14 * DAY

Adopt = Callable[..., Neo4jJobStore]


@pytest.fixture
def queue(neo4j_queue: BedServer, clock: FakeClock) -> Iterator[Neo4jDatabase]:
    neo4j_queue.wipe()
    database = connect(neo4j_queue.address, clock=clock)
    yield database
    database.close()


@pytest.fixture
def adopt(neo4j_queue: BedServer, queue: Neo4jDatabase, clock: FakeClock) -> Adopt:
    def add_and_adopt(*jobs: dict[str, object]) -> Neo4jJobStore:
        neo4j_queue.run(ADD_JOBS, jobs=list(jobs))
        assert schema.prepare_queue(queue) == len(jobs)
        return Neo4jJobStore(Neo4jQueue(queue, clock=clock))

    return add_and_adopt


def seeds_job(name: str, clock: FakeClock, **fields: object) -> dict[str, object]:
    """The seed's fields only, of a job made long ago."""
    return {
        "id": name,
        "entity_uid": name,
        "model": MODEL,
        "version": "v1",
        "status": "pending",
        "priority": 5,
        "created_at": to_ms(clock.now() - 100 * DAY),
        "attempts": 0,
        "max_attempts": 3,
        **fields,
    }


class TestLife:
    @pytest.mark.parametrize("priority", [100, 5, -1, None])
    def test_adopted_job_is_leased_completed_and_cleaned_up(
        self, adopt: Adopt, clock: FakeClock, priority: int | None
    ) -> None:
        store = adopt(seeds_job("a", clock, priority=priority))

        lease = take(store)
        settled = store.complete(lease, lease.job_ids)
        clock.advance(RETENTION + SECOND)
        report = store.cleanup(older_than=RETENTION)

        assert lease.job_ids == settled.done == (JobId("a"),)
        assert report.completed == 1

    @pytest.mark.parametrize("priority", [100, 5, -1])
    def test_adopted_job_whose_worker_is_gone_is_recovered_and_leased(
        self, adopt: Adopt, clock: FakeClock, priority: int
    ) -> None:
        held = {"status": "processing", "priority": priority, "lock_owner": "gone"}
        ended = to_ms(clock.now() - SECOND)
        store = adopt(
            seeds_job("a", clock, **held), seeds_job("b", clock, **held, lock_until=ended)
        )

        recovery = store.recover_stale()

        assert {job.id for job in recovery.jobs} == {"a", "b"}
        assert set(take(store).job_ids) == {"a", "b"}

    def test_adopted_job_that_is_forced_is_leased(self, adopt: Adopt, clock: FakeClock) -> None:
        store = adopt(seeds_job("a", clock, priority=100), seeds_job("b", clock, priority=-1))

        store.enqueue([request("a", force=True), request("b", force=True)])

        lease = take(store)
        assert [(job.id, job.priority, job.force) for job in lease.jobs] == [
            ("a", 9, True),
            ("b", 5, True),
        ]

    def test_adopted_failed_job_is_seen_for_a_whole_retention(
        self, adopt: Adopt, clock: FakeClock
    ) -> None:
        store = adopt(seeds_job("a", clock, status="failed", error="It was refused."))

        clock.advance(RETENTION - SECOND)
        kept = store.cleanup(older_than=RETENTION)

        assert kept.jobs == 0
        assert [job.id for job in store.failed_jobs()] == ["a"]
        assert store.get_queue_status().failed == 1
        assert store.retry_failed() == (JobId("a"),)
        assert stored(store, JobId("a")).status is JobStatus.PENDING

    def test_adopted_failed_job_is_cleaned_up_after_it(
        self, adopt: Adopt, clock: FakeClock
    ) -> None:
        store = adopt(seeds_job("a", clock, status="failed"))

        clock.advance(RETENTION + SECOND)

        assert store.cleanup(older_than=RETENTION).failed == 1


class TestWrittenAfterSetUp:
    @pytest.fixture
    def store(self, queue: Neo4jDatabase, clock: FakeClock) -> Neo4jJobStore:
        schema.prepare_queue(queue)
        return Neo4jJobStore(Neo4jQueue(queue, clock=clock))

    def test_job_is_counted_due_and_leased_at_once_without_any_recovery(
        self, neo4j_queue: BedServer, store: Neo4jJobStore, clock: FakeClock
    ) -> None:
        jobs = [seeds_job("a", clock, priority=100), seeds_job("b", clock, max_attempts=None)]
        neo4j_queue.run(ADD_JOBS, jobs=jobs)
        counted, due = store.get_queue_status().pending, store.next_due(model=MODEL)

        lease = take(store)

        assert (counted, due) == (2, clock.now())
        assert [(job.id, job.priority, job.max_attempts) for job in lease.jobs] == [
            ("a", 9, 3),
            ("b", 5, 3),
        ]
        (event,) = store.events.recent(kind="jobs.adopted")
        assert event.job_ids == ("a", "b")
        assert store.next_due(model=MODEL) is None

    def test_a_long_list_of_jobs_is_adopted_in_one_pass_of_recovery(
        self, neo4j_queue: BedServer, store: Neo4jJobStore, clock: FakeClock
    ) -> None:
        number = 5 * PAGE // 2
        neo4j_queue.run(ADD_JOBS, jobs=[seeds_job(f"{n:05}", clock) for n in range(number)])

        store.recover_stale()

        adopted = [event.job_ids for event in store.events.recent(kind="jobs.adopted")]
        assert sorted(map(len, adopted)) == [PAGE // 2, PAGE, PAGE]
        assert len({job_id for job_ids in adopted for job_id in job_ids}) == number

    def test_job_left_in_processing_is_taken_in_and_recovered_at_once(
        self, neo4j_queue: BedServer, store: Neo4jJobStore, clock: FakeClock
    ) -> None:
        held = {"status": "processing", "lock_owner": "gone"}
        neo4j_queue.run(ADD_JOBS, jobs=[seeds_job("a", clock, **held)])

        recovery = store.recover_stale()

        assert [job.id for job in recovery.jobs] == ["a"]
        assert take(store).job_ids == (JobId("a"),)

    @pytest.mark.parametrize("missing", ["entity_uid", "version"])
    def test_job_that_cannot_be_named_is_left_alone(
        self, neo4j_queue: BedServer, store: Neo4jJobStore, clock: FakeClock, missing: str
    ) -> None:
        neo4j_queue.run(ADD_JOBS, jobs=[seeds_job("a", clock) | {missing: None}])

        store.recover_stale()

        assert take(store).job_ids == ()
        assert store.events.recent(kind="jobs.adopted") == ()


class TestLeft:
    def test_waiting_jobs_under_a_strange_model_are_told_with_what_to_do(
        self, neo4j_queue: BedServer, queue: Neo4jDatabase, clock: FakeClock
    ) -> None:
        strange = {"model": "text-embedding-3-small"}
        jobs = [
            seeds_job("1", clock, **strange),
            seeds_job("2", clock, **strange),
            seeds_job("3", clock, model=None),
            seeds_job("4", clock, **strange, status="completed"),
            seeds_job("5", clock, model="openai/text-embedding-3-small@1536"),
        ]
        neo4j_queue.run(ADD_JOBS, jobs=jobs)

        first, second = sentences_on_jobs_left(queue)

        assert first.startswith("2 waiting jobs name the model text-embedding-3-small, so no run")
        assert "provider/name@dimensions" in first
        assert second.startswith("1 jobs have no text as their property `model`, so they were not")

    def test_jobs_of_ours_are_not_mentioned(
        self, neo4j_queue: BedServer, queue: Neo4jDatabase, clock: FakeClock
    ) -> None:
        models = ["openai/text-embedding-3-small@1536", "local/org/name@256", "mock/mock@64"]
        neo4j_queue.run(ADD_JOBS, jobs=[seeds_job(model, clock, model=model) for model in models])

        assert sentences_on_jobs_left(queue) == []

    def test_jobs_that_cannot_be_named_are_told_and_in_nobodys_way(
        self, neo4j_queue: BedServer, adopt: Adopt, queue: Neo4jDatabase, clock: FakeClock
    ) -> None:
        incomplete = [
            seeds_job("1", clock, version=None),
            seeds_job("2", clock, version=None, status="failed"),
            seeds_job("3", clock, entity_uid=None),
            seeds_job("4", clock, id=None),
            seeds_job("5", clock, id=5, entity_uid=5),
            seeds_job("6", clock, model=6, version=6),
        ]
        neo4j_queue.run(ADD_JOBS, jobs=incomplete)
        store = adopt(seeds_job("a", clock))

        told = sentences_on_jobs_left(queue)

        assert take(store).job_ids == (JobId("a"),)
        assert [sentence.partition(", so ")[0] for sentence in told] == [
            "2 jobs have no text as their property `entity_uid`",
            "2 jobs have no text as their property `id`",
            "1 jobs have no text as their property `model`",
            "3 jobs have no text as their property `version`",
        ]

    @pytest.mark.parametrize("missing", ["entity_uid", "model", "version"])
    def test_expired_job_that_lacks_something_does_not_stop_recovery(
        self, neo4j_queue: BedServer, queue: Neo4jDatabase, clock: FakeClock, missing: str
    ) -> None:
        held = {"status": "processing", "lock_owner": "gone", "lock_until": 1}
        incomplete = seeds_job("1", clock, **held) | {missing: None}
        neo4j_queue.run(ADD_JOBS, jobs=[incomplete, seeds_job("a", clock, **held)])
        schema.prepare_queue(queue)
        store = Neo4jJobStore(Neo4jQueue(queue, clock=clock))

        recovered = {job.id for job in store.recover_stale().jobs}

        assert recovered == {"1", "a"}
        assert "a" in take(store).job_ids
