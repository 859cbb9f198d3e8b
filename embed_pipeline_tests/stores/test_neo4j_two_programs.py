"""Two programs on one queue: ours, and one that knows only the seeds. No job becomes invisible."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embed_pipeline.domain.job import EntityUid, FailureRecord, JobStatus
from embed_pipeline.domain.lease import Lease
from embed_pipeline.domain.recovery import QueuePolicy, RecoveryPolicy
from embed_pipeline.errors import ErrorCategory
from embed_pipeline.stores.neo4j.queue.job_store import Neo4jJobStore
from embed_pipeline_tests.contracts.job_store.scene import MODEL, new_token, request, take
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.neo4j_bed.server import Address
from embed_pipeline_tests.stores import seeds_program as seeds
from embed_pipeline_tests.stores.neo4j_queue import DELETE_ALL, open_jobs, prepared
from embed_pipeline_tests.stores.seeds_program import SeedsProgram

OVER = -1_000
"""A lease that has ended when it is made, in milliseconds."""

OURS_IS_OVER = """
MATCH (job:EmbedJob) WHERE job.status = 'processing' SET job.lock_until = timestamp() - 1
"""

DEAD = FailureRecord(category=ErrorCategory.PERMANENT, error_type="Refused", message="No.")
FLAKY = FailureRecord(category=ErrorCategory.TRANSIENT, error_type="Flaky", message="Again.")


@pytest.fixture(scope="module")
def address(neo4j_queue: BedServer) -> Address:
    return prepared(neo4j_queue)


@pytest.fixture
def store(neo4j_queue: BedServer, address: Address) -> Iterator[Neo4jJobStore]:
    neo4j_queue.run(DELETE_ALL)
    # However often a job is recovered, it is not failed.
    policy = QueuePolicy(recovery=RecoveryPolicy(max_recoveries=1_000, last_resort=1_000))
    store = open_jobs(address, policy=policy)
    yield store
    store.close()


@pytest.fixture
def theirs(neo4j_queue: BedServer) -> SeedsProgram:
    return SeedsProgram(neo4j_queue, model=MODEL)


def leased(store: Neo4jJobStore) -> set[str]:
    return {job.entity_uid for job in take(store, 100).jobs}


class TestPendingByAnotherProgram:
    def test_the_seeds_recovery_returns_a_job_of_ours_to_every_worker(
        self, neo4j_queue: BedServer, store: Neo4jJobStore, theirs: SeedsProgram
    ) -> None:
        store.enqueue([request("a", priority=7)])
        take(store)
        neo4j_queue.run(OURS_IS_OVER)

        theirs.step(seeds.SEEDS_RECOVERY)

        assert store.get_queue_status().pending == 1
        assert store.next_due(model=MODEL) is not None
        (job,) = take(store).jobs
        assert (job.entity_uid, job.priority) == ("a", 7)

    def test_a_failed_job_that_is_reset_by_hand_starts_afresh(
        self, store: Neo4jJobStore, theirs: SeedsProgram
    ) -> None:
        store.enqueue([request("a")])
        lease = take(store)
        store.fail(lease, {lease.job_ids[0]: DEAD})

        theirs.step(seeds.RESET_FAILED)

        (job,) = take(store).jobs
        assert (job.entity_uid, job.attempts, job.processed_at) == ("a", 0, None)

    def test_a_completed_job_that_is_set_to_pending_is_leased(
        self, store: Neo4jJobStore, theirs: SeedsProgram
    ) -> None:
        store.enqueue([request("a")])
        lease = take(store)
        store.complete(lease, lease.job_ids)

        theirs.step(seeds.RESET_COMPLETED)

        assert leased(store) == {"a"}


class TestStatusOfAnotherProgram:
    @pytest.mark.parametrize("status", ["PENDING", "queued", "", "zzz", None])
    def test_it_is_counted_and_leased_as_soon_as_it_is_pending(
        self,
        neo4j_queue: BedServer,
        store: Neo4jJobStore,
        theirs: SeedsProgram,
        status: str | None,
    ) -> None:
        theirs.add("a")
        neo4j_queue.run("MATCH (job:EmbedJob) SET job.status = $status", status=status)

        before, counted = leased(store), store.get_queue_status()
        due = store.next_due(model=MODEL)
        neo4j_queue.run("MATCH (job:EmbedJob) SET job.status = 'pending'")

        assert (before, due) == (set(), None)
        assert (counted.other, counted.total) == (1, 1)
        assert leased(store) == {"a"}


class TestWrittenByAnotherProgram:
    def test_its_jobs_are_live_before_and_after_they_are_adopted(
        self, store: Neo4jJobStore, theirs: SeedsProgram
    ) -> None:
        store.enqueue([request("a")])
        theirs.add("b")
        theirs.add("c")

        before = store.count_live(model=MODEL, limit=10)
        capped = store.count_live(model=MODEL, limit=2)
        leased(store)

        assert (before.pending, before.processing, capped.pending) == (3, 0, 2)
        assert store.count_live(model=MODEL, limit=10).processing == 3


class TestEndedByAnotherProgram:
    def test_jobs_that_it_ends_are_counted_shown_and_retried(
        self, store: Neo4jJobStore, theirs: SeedsProgram
    ) -> None:
        store.enqueue([request(uid) for uid in "abc"])
        theirs.add("d")
        theirs.lease(4)

        theirs.step(seeds.COMPLETE_JOBS, limit=2)
        theirs.step(seeds.FAIL_JOBS_FOR_GOOD, limit=2)

        status = store.get_queue_status()
        assert (status.completed, status.failed, status.total) == (2, 2, 4)
        assert len(store.failed_jobs()) == len(store.history.parked()) == 2
        assert store.history.count_parked(limit=10) == 2
        assert len(store.retry_failed()) == 2
        assert len(leased(store)) == 2

    def test_a_job_that_it_has_leased_meanwhile_is_not_leased_twice(
        self, store: Neo4jJobStore, theirs: SeedsProgram
    ) -> None:
        store.enqueue([request("a")])

        theirs.lease(1)

        assert leased(store) == set()
        assert store.recover_stale().jobs == ()


UIDS = "abcd"
COUNTS = st.integers(1, 3)

Step = tuple[str, int]

STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "we add",
                "we lease",
                "we complete",
                "we fail",
                "we release",
                "we recover",
                "we retry",
                "our lease ends",
                "they add",
                "they lease",
                "they lease for no time",
                seeds.COMPLETE_JOBS,
                seeds.FAIL_JOBS,
                seeds.FAIL_JOBS_FOR_GOOD,
                seeds.RELEASE_JOBS,
                seeds.HEARTBEAT,
                seeds.SEEDS_RECOVERY,
                seeds.RESET_FAILED,
                seeds.RESET_COMPLETED,
            ]
        ),
        COUNTS,
    ),
    max_size=12,
)


class Story:
    """Runs the steps of both programs; ours works on the latest lease."""

    def __init__(self, server: BedServer, store: Neo4jJobStore) -> None:
        self._server, self._store = server, store
        self._theirs = SeedsProgram(server, model=MODEL)
        self._lease: Lease | None = None

    def run(self, step: str, count: int) -> None:
        uid = UIDS[count]
        ours: dict[str, Callable[[], object]] = {
            "we add": lambda: self._store.enqueue([request(uid)]),
            "we lease": lambda: self._take(count),
            "we complete": lambda: self._end("complete"),
            "we fail": lambda: self._end("fail"),
            "we release": lambda: self._end("release"),
            "we recover": self._store.recover_stale,
            "we retry": self._store.retry_failed,
            "our lease ends": lambda: self._server.run(OURS_IS_OVER),
            "they add": lambda: self._theirs.add(uid),
            "they lease": lambda: self._theirs.lease(count),
            "they lease for no time": lambda: self._theirs.lease(count, duration=OVER),
        }
        if step in ours:
            ours[step]()
        else:
            self._theirs.step(step, limit=count)

    def _take(self, limit: int) -> None:
        self._lease = self._store.lease(owner="ours", model=MODEL, limit=limit, token=new_token())

    def _end(self, verb: str) -> None:
        if self._lease is None:
            return
        ids, lease = self._lease.job_ids, self._lease
        match verb:
            case "complete":
                self._store.complete(lease, ids[:1])
            case "fail":
                self._store.fail(lease, dict.fromkeys(ids[:1], FLAKY))
            case _:
                self._store.release(lease, ids)

    def check(self) -> None:
        counted = self._theirs.raw_counts()
        status = self._store.get_queue_status()
        assert {s.value: getattr(status, s.value) for s in JobStatus} == {
            s.value: counted.get(s.value, 0) for s in JobStatus
        }
        assert status.other == 0
        assert self._lease_all() == status.pending
        self._server.run(OURS_IS_OVER)
        recovered = self._store.recover_stale().jobs
        assert len(recovered) == status.pending + status.processing
        assert self._lease_all() == len(recovered)
        self._check_lists(status.total)

    def _lease_all(self) -> int:
        """How many can be leased, once all waits are over."""
        self._server.run("MATCH (job:EmbedJob) WHERE job.available_at > 0 SET job.available_at = 1")
        found: set[str] = set()
        while jobs := take(self._store, 100).jobs:
            found |= {job.id for job in jobs}
        return len(found)

    def _check_lists(self, total: int) -> None:
        jobs = [job for uid in UIDS for job in self._store.history.of_entity(EntityUid(uid))]
        assert len(jobs) == total
        failed = {job.id for job in jobs if job.status is JobStatus.FAILED}
        completed = {job.id for job in jobs if job.status is JobStatus.COMPLETED}
        assert {job.id for job in self._store.failed_jobs()} == failed
        assert {job.id for job in self._store.history.ended()} == completed | failed


@settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(steps=STEPS)
def test_no_job_is_invisible_whoever_changed_it_last(
    neo4j_queue: BedServer, store: Neo4jJobStore, steps: list[Step]
) -> None:
    neo4j_queue.run(DELETE_ALL)
    story = Story(neo4j_queue, store)

    for step, count in steps:
        story.run(step, count)

    story.check()
