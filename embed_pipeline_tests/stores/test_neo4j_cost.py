"""What a call costs on Neo4j must not follow the size of the queue.

Counted in the server's db hits, by PROFILE: the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import TypeVar

import pytest

from embed_pipeline.domain.job import EntityUid, JobId, JobStatus
from embed_pipeline.stores.encoding import to_ms
from embed_pipeline.stores.neo4j.driver.database import Neo4jDatabase, Row, Tx
from embed_pipeline.stores.neo4j.queue.adoption import SAMPLE
from embed_pipeline.stores.neo4j.queue.backend import Neo4jQueue
from embed_pipeline.stores.neo4j.queue.cypher import recovery as cypher_recovery
from embed_pipeline.stores.neo4j.queue.cypher.parts import UNENDED_SAMPLE
from embed_pipeline.stores.neo4j.queue.job_store import Neo4jJobStore
from embed_pipeline_tests.clocks import DAY, HOUR, FakeClock
from embed_pipeline_tests.contracts.job_store.scene import MODEL, add_jobs, take
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.neo4j_bed.server import Address
from embed_pipeline_tests.stores.neo4j_plans import ways
from embed_pipeline_tests.stores.neo4j_queue import Neo4jQueueBackend, connect, prepared
from embed_pipeline_tests.stores.seeds_program import SEEDS_RECOVERY

T = TypeVar("T")

FEW, MANY = 1_000, 50_000
NOISE = 10
A_SAMPLE = 3 * UNENDED_SAMPLE + 200
"""Index, status and end of each job of the sample, however long the queue is."""
LEAST_PER_JOB = 5
"""To find, lock, change and return a job: less would mean that not all hits are seen."""
CLOCK = FakeClock()

INSERT_CROWD = """
UNWIND range(1, $count) AS n
CALL (n) {
    CREATE (job:EmbedJob:TrackedJob {
        id: $name + n, entity_uid: $name + n, model: $model, version: 'v1', status: $status,
        priority: -$rank, rank: CASE $status WHEN 'pending' THEN $rank END, tier: 0,
        created_at: $at, attempts: 0, max_attempts: 3
    })
    SET job += $fields
} IN TRANSACTIONS OF 5000 ROWS
"""


class ProfiledTx(Tx):
    def __init__(self, inner: Tx, tally: list[int]) -> None:
        self._transaction, self._now = inner._transaction, inner._now
        self._tally = tally

    def all(self, statement: str, /, **parameters: object) -> list[Row]:
        result = self._transaction.run("PROFILE " + statement, {"now": self._now, **parameters})
        found = [dict(record) for record in result]
        self._tally.append(_hits(result.consume().profile))
        return found


class ProfiledDatabase(Neo4jDatabase):
    """Counts the hits of every statement that goes through it."""

    tally: list[int]

    def write(self, work: Callable[[Tx], T], *, timeout: timedelta | None = None) -> T:
        return super().write(lambda tx: work(ProfiledTx(tx, self.tally)), timeout=timeout)

    def read(self, work: Callable[[Tx], T]) -> T:
        return super().read(lambda tx: work(ProfiledTx(tx, self.tally)))


def _hits(plan: object) -> int:
    assert isinstance(plan, dict)
    return int(plan.get("dbHits", 0)) + sum(_hits(child) for child in plan.get("children", []))


def hits(address: Address, call: Callable[[Neo4jJobStore], object]) -> int:
    """Db hits of one call on a store of its own, all its statements together."""
    return hits_of(address, lambda database: call(Neo4jJobStore(Neo4jQueue(database, clock=CLOCK))))


def hits_of(address: Address, work: Callable[[Neo4jDatabase], object]) -> int:
    database = ProfiledDatabase(
        address.uri,
        user=address.user,
        password=address.password,
        database=address.database,
        clock=CLOCK,
    )
    database.tally = []
    work(database)
    database.close()
    touched = sum(database.tally)
    assert touched > 0, "a profile that tells of no hits proves nothing"
    return touched


def crowd(
    server: BedServer, name: str, *, status: str, priority: int, count: int = MANY, **fields: object
) -> None:
    server.run(
        INSERT_CROWD,
        name=name,
        status=status,
        rank=-priority,
        count=count,
        model=MODEL,
        at=to_ms(CLOCK.now()),
        fields={"available_at": to_ms(CLOCK.now()), **fields},
    )


def lease_ten(store: Neo4jJobStore) -> None:
    assert len(take(store, 10).jobs) == 10


@pytest.fixture(scope="module")
def lease_costs(neo4j_queue: BedServer) -> Iterator[dict[str, int]]:
    """What a lease of ten costs as the queue grows; the first one makes the shared nodes."""
    address = prepared(neo4j_queue)
    backend = Neo4jQueueBackend(address, CLOCK)
    backend.empty()
    store = backend.open_store()
    add_jobs(store, 20)
    take(store, 10)
    crowd(neo4j_queue, "few", status="pending", priority=5, count=FEW)
    costs = {"few": hits(address, lease_ten)}
    tomorrow = to_ms(CLOCK.now() + DAY)
    crowd(neo4j_queue, "deferred", status="pending", priority=9, available_at=tomorrow)
    costs["deferred"] = hits(address, lease_ten)
    crowd(neo4j_queue, "many", status="pending", priority=5)
    costs["many"] = hits(address, lease_ten)
    yield costs
    backend.close()


def test_lease_of_ten_touches_less_than_300(lease_costs: dict[str, int]) -> None:
    assert 10 * LEAST_PER_JOB < lease_costs["few"] < 300


def test_lease_costs_the_same_in_a_long_queue(lease_costs: dict[str, int]) -> None:
    assert abs(lease_costs["many"] - lease_costs["few"]) <= NOISE


def test_lease_never_walks_deferred_jobs_of_a_higher_priority(lease_costs: dict[str, int]) -> None:
    assert abs(lease_costs["deferred"] - lease_costs["few"]) <= NOISE


@pytest.fixture(scope="module")
def crowded(neo4j_queue: BedServer, lease_costs: dict[str, int]) -> Address:
    """A queue full of jobs, none of which is stale or old."""
    now = CLOCK.now()
    crowd(
        neo4j_queue,
        "held",
        status="processing",
        priority=5,
        count=20_000,
        lock_owner="run-1",
        lock_until=to_ms(now + HOUR),
        lease_token="run-1",
    )
    crowd(
        neo4j_queue,
        "done",
        status="completed",
        priority=5,
        count=20_000,
        processed_at=to_ms(now),
        ended_at=to_ms(now),
    )
    return neo4j_queue.address


@pytest.mark.parametrize(
    ("call", "most"),
    [
        # These two also read a bounded sample, for leases without an end.
        pytest.param(lambda store: store.recover_stale(), A_SAMPLE, id="recover_stale"),
        pytest.param(lambda store: store.has_stale(), A_SAMPLE, id="has_stale"),
        pytest.param(lambda store: store.recover_owner("nobody"), 50, id="recover_owner"),
        pytest.param(lambda store: store.next_due(model=MODEL), 100, id="next_due"),
        pytest.param(lambda store: store.live_owners(), 100, id="live_owners"),
        pytest.param(lambda store: store.silence(), 100, id="silence"),
        pytest.param(lambda store: take(store, 10, model="mock/other@8"), 100, id="lease"),
        pytest.param(lambda store: store.failed_jobs(), 20, id="failed_jobs"),
        pytest.param(lambda store: store.retry_failed(), 20, id="retry_failed"),
        pytest.param(lambda store: store.events.recent(limit=10), 150, id="events"),
        pytest.param(lambda store: store.cancel(entity_uid=EntityUid("x")), 20, id="cancel"),
        pytest.param(lambda store: store.history.of_entity(EntityUid("x")), 20, id="of_entity"),
        pytest.param(lambda store: store.history.ended(since=CLOCK.now() + DAY), 30, id="ended"),
        pytest.param(
            lambda store: store.history.ended(status=JobStatus.FAILED), 20, id="ended of failed"
        ),
        pytest.param(lambda store: store.history.parked(), 20, id="parked"),
        pytest.param(lambda store: store.history.count_parked(), 20, id="count_parked"),
    ],
)
def test_call_with_nothing_to_do_costs_nothing(
    crowded: Address, call: Callable[[Neo4jJobStore], object], most: int
) -> None:
    assert hits(crowded, call) <= most


def test_counts_by_status_load_no_job(crowded: Address) -> None:
    """A hit for each entry of the index; to load a job would be one more for each."""
    status = Neo4jJobStore(Neo4jQueue(connect(crowded, clock=CLOCK))).get_queue_status()

    cost = hits(crowded, lambda store: store.get_queue_status())

    assert status.total > 100_000
    assert status.total <= cost <= status.total + 20


def test_a_job_of_another_program_costs_a_lease_a_bounded_sample(
    neo4j_queue: BedServer, crowded: Address
) -> None:
    neo4j_queue.run(
        "CREATE (:EmbedJob {id: 'x', entity_uid: 'x', model: $model, version: 'v',"
        " status: 'pending', priority: 9})",
        model=MODEL,
    )
    leased: list[str] = []

    cost = hits(crowded, lambda store: leased.extend(take(store, 1).job_ids))

    assert leased == ["x"]
    assert cost <= 3 * SAMPLE


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        ("MATCH (job:EmbedJob) WHERE job.status = 'pending' RETURN count(job)", "(status)"),
        (SEEDS_RECOVERY, "(status, lock_until)"),
    ],
    ids=["a status", "recovery"],
)
def test_the_seeds_own_questions_are_answered_by_an_index(
    neo4j_queue: BedServer, crowded: Address, statement: str, index: str
) -> None:
    ((kind, by),) = ways(neo4j_queue, {"it": statement})["it"]

    assert kind == "NodeIndexSeek"
    assert f"EmbedJob{index}" in by


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param(cypher_recovery.ENDED_JOBS, id="jobs"),
        pytest.param(cypher_recovery.OLD_EVENTS, id="events"),
    ],
)
def test_cleanup_looks_only_at_what_is_old(crowded: Address, statement: str) -> None:
    """These find what the server's own batches delete, which PROFILE cannot look into."""
    long_ago = to_ms(CLOCK.now() - DAY)

    def find(database: Neo4jDatabase) -> None:
        database.read(lambda tx: tx.all(statement, status="completed", cutoff=long_ago))

    assert hits_of(crowded, find) <= 10


@pytest.mark.parametrize("size", [10, 100])
def test_cleanup_touches_in_proportion_to_what_it_deletes(
    neo4j_queue: BedServer, crowded: Address, size: int
) -> None:
    long_ago = CLOCK.now() - 2 * DAY
    crowd(
        neo4j_queue,
        f"old {size} ",
        status="completed",
        priority=5,
        count=size,
        processed_at=to_ms(long_ago),
        ended_at=to_ms(long_ago),
    )
    facts = {"status": "completed", "cutoff": to_ms(long_ago + DAY)}
    found: list[Row] = []

    def clean_up(database: Neo4jDatabase) -> None:
        """As the server's own batches do it."""
        found.extend(database.read(lambda tx: tx.all(cypher_recovery.ENDED_JOBS, **facts)))
        places = [row["place"] for row in found]
        delete = "UNWIND $places AS place " + cypher_recovery.DELETE_JOB
        database.write(lambda tx: tx.all(delete, places=places, **facts))

    cost = hits_of(crowded, clean_up)

    assert len(found) == size
    assert size * LEAST_PER_JOB <= cost <= 20 + size * 40


def test_recovery_touches_in_proportion_to_what_it_returns(
    neo4j_queue: BedServer, crowded: Address
) -> None:
    idle = hits(crowded, lambda store: store.recover_stale())
    expired = to_ms(CLOCK.now() - HOUR)
    crowd(
        neo4j_queue,
        "stale",
        status="processing",
        priority=5,
        count=100,
        lock_owner="gone",
        lock_until=expired,
        lease_token="gone",
    )

    def recover(store: Neo4jJobStore) -> None:
        assert len(store.recover_stale().jobs) == 100

    assert hits(crowded, recover) <= idle + 100 * 50


@pytest.mark.parametrize("size", [10, 100])
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(lambda store, n: store.history.walk(limit=n), id="walk"),
        pytest.param(
            lambda store, n: store.history.ended(since=CLOCK.now() - DAY, limit=n), id="ended"
        ),
        pytest.param(
            lambda store, n: store.history.ended(
                since=CLOCK.now() - DAY, after=store.get(JobId("done5")), limit=n
            ),
            id="ended in the same millisecond",
        ),
        pytest.param(lambda store, n: store.cancel(limit=n), id="cancel"),
        pytest.param(
            lambda store, n: range(store.count_live(model=MODEL, limit=n).pending), id="count_live"
        ),
    ],
)
def test_a_page_of_the_history_touches_in_proportion_to_what_it_returns(
    crowded: Address, page: Callable[[Neo4jJobStore, int], Sequence[object]], size: int
) -> None:
    found: list[object] = []

    cost = hits(crowded, lambda store: found.extend(page(store, size)))

    assert len(found) == size
    assert cost <= 100 + size * 60
