"""What a call costs on PostgreSQL must not follow the size of the queue.

Counted in pages that the server's own plans report, which are the same on every machine. Every
statement of a call is explained with its real parameters, rolled back, and then run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from psycopg import sql as composing

from embed_pipeline.domain.job import EntityUid, JobId, JobStatus
from embed_pipeline.stores.config import Server
from embed_pipeline.stores.encoding import to_ms
from embed_pipeline.stores.postgres.queue import sql
from embed_pipeline.stores.postgres.queue.backend import PostgresReading
from embed_pipeline.stores.queue.job_store import QueueJobStore
from embed_pipeline_tests.clocks import DAY, HOUR, FakeClock
from embed_pipeline_tests.contracts.job_store.scene import MODEL, add_jobs, request, take
from embed_pipeline_tests.stores.postgres_queue import PostgresQueueBackend, own_schema

CROWD = 50_000

INSERT_CROWD = """
INSERT INTO {jobs} (id, entity_uid, model, version, status, priority, created_at, available_at,
                    processed_at, lock_owner, lock_until, lease_token, max_attempts)
SELECT status || i, status || i, {model}, 'v1', status, 9, {now}, {now} + wait,
       CASE WHEN status = 'completed' THEN {now} END,
       owner, CASE WHEN owner IS NOT NULL THEN {now} + {hour} END, owner, 3
FROM generate_series(1, {count}) AS i,
     (VALUES ('pending', {day}, NULL), ('completed', 0, NULL), ('processing', 0, 'run-1'))
        AS kinds(status, wait, owner)
"""


# Autovacuum analyses a table within a minute; until then an index may be picked that is not ideal.
@pytest.fixture(scope="module", params=[200, 1_000], ids=["analysed", "never analysed"])
def most(request: pytest.FixtureRequest) -> int:
    """Pages of a call that finds nothing."""
    return int(request.param)


@pytest.fixture(scope="module")
def crowded(most: int, postgres_url: str) -> Iterator[PostgresQueueBackend]:
    """A queue full of jobs, none of which is due, stale or old."""
    clock = FakeClock()
    with own_schema(postgres_url) as server:
        backend = PostgresQueueBackend(postgres_url, server, clock)
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            _fill(connection, server, clock, analysed=most == 200)
        yield backend
        backend.close()


def _fill(
    connection: psycopg.Connection[Any], server: Server, clock: FakeClock, *, analysed: bool
) -> None:
    jobs = composing.Identifier(server.schema, "embed_job")
    connection.execute(
        composing.SQL("ALTER TABLE {} SET (autovacuum_enabled = false)").format(jobs)
    )
    connection.execute(
        composing.SQL(INSERT_CROWD).format(
            jobs=jobs,
            model=MODEL,
            now=to_ms(clock.now()),
            day=to_ms(clock.now() + DAY) - to_ms(clock.now()),
            hour=to_ms(clock.now() + HOUR) - to_ms(clock.now()),
            count=CROWD,
        )
    )
    if analysed:
        connection.execute(composing.SQL("VACUUM ANALYZE {}").format(jobs))


Plan = dict[str, Any]


@contextmanager
def explained() -> Iterator[list[Plan]]:
    """The plan of every statement that is run inside the block."""
    plans: list[Plan] = []
    execute = PostgresReading._execute

    def explain(self: Any, rows: Any, statement: str, parameters: dict[str, object]) -> Any:
        given = parameters | {"now": to_ms(self._clock.now())}
        text = sql.rendered(statement, self._schema, has_clock=True)
        with self._connection.transaction(force_rollback=True):
            (plan,) = next(
                self._connection.execute(b"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + text, given)
            )["QUERY PLAN"]
            plans.append(plan["Plan"])
        return execute(self, rows, statement, parameters)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PostgresReading, "_execute", explain)
        yield plans


def nodes(plan: Plan) -> Iterator[Plan]:
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


def pages(backend: PostgresQueueBackend, call: Callable[[QueueJobStore], object]) -> int:
    """Pages that all statements of one call read; none of them may read a whole table of jobs."""
    store = backend.open_store()
    with explained() as plans:
        call(store)
    walked = [
        node["Relation Name"]
        for plan in plans
        for node in nodes(plan)
        if node["Node Type"] == "Seq Scan" and node["Relation Name"] == "embed_job"
    ]
    assert plans
    assert not walked
    return sum(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] for plan in plans)


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda store: store.recover_stale(), id="recover_stale"),
        pytest.param(lambda store: store.has_stale(), id="has_stale"),
        pytest.param(lambda store: store.recover_owner("nobody"), id="recover_owner"),
        pytest.param(lambda store: store.cleanup(older_than=DAY), id="cleanup"),
        pytest.param(lambda store: store.retry_failed(), id="retry_failed"),
        pytest.param(lambda store: store.next_due(model=MODEL), id="next_due"),
        pytest.param(lambda store: store.live_owners(), id="live_owners"),
        pytest.param(lambda store: store.silence(), id="silence"),
        pytest.param(lambda store: take(store, 10), id="lease"),
        pytest.param(lambda store: store.failed_jobs(), id="failed_jobs"),
        pytest.param(lambda store: store.cancel(entity_uid=EntityUid("x")), id="cancel"),
        pytest.param(lambda store: store.history.of_entity(EntityUid("x")), id="of_entity"),
        pytest.param(
            lambda store: store.history.ended(since=store.now() + DAY), id="history.ended"
        ),
        pytest.param(
            lambda store: store.history.ended(status=JobStatus.FAILED), id="history.ended of failed"
        ),
        pytest.param(lambda store: store.history.parked(), id="history.parked"),
        pytest.param(lambda store: store.history.count_parked(), id="history.count_parked"),
    ],
)
def test_call_with_nothing_to_do_costs_nothing(
    crowded: PostgresQueueBackend, most: int, call: Callable[[QueueJobStore], object]
) -> None:
    assert pages(crowded, call) < most


def test_jobs_of_a_long_queue_cost_as_much_as_they_are(crowded: PostgresQueueBackend) -> None:
    """Enqueue, lease, heartbeat, complete; each job touches the table and its five indexes."""
    store = crowded.open_store()
    requests = [request(f"due{n}") for n in range(100)]

    enqueue = pages(crowded, lambda store: store.enqueue(requests))
    lease = pages(crowded, lambda store: take(store, 50))
    held = take(store, 50)
    heartbeat = pages(crowded, lambda store: store.heartbeat(held, held.job_ids))
    complete = pages(crowded, lambda store: store.complete(held, held.job_ids))

    assert len(held.jobs) == 50
    assert enqueue < 100 * 50
    assert max(lease, heartbeat, complete) < 50 * 50
    store.recover_owner("worker-a")
    store.cancel(limit=10)


@pytest.mark.parametrize("size", [10, 100])
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(lambda store, n: store.history.walk(limit=n), id="walk"),
        pytest.param(
            lambda store, n: store.history.walk(limit=n, after=JobId("completed5")), id="next page"
        ),
        pytest.param(
            lambda store, n: store.history.ended(since=store.now() - DAY, limit=n), id="ended"
        ),
        pytest.param(
            lambda store, n: store.history.ended(
                since=store.now() - DAY, after=store.get(JobId("completed5")), limit=n
            ),
            id="ended in the same millisecond",
        ),
        pytest.param(lambda store, n: store.cancel(limit=n), id="cancel"),
        pytest.param(
            lambda store, n: range(store.count_live(model=MODEL, limit=n).pending), id="count_live"
        ),
    ],
)
def test_a_page_of_the_history_costs_as_much_as_it_returns(
    crowded: PostgresQueueBackend,
    page: Callable[[QueueJobStore, int], Sequence[object]],
    size: int,
) -> None:
    found: list[object] = []

    cost = pages(crowded, lambda store: found.extend(page(store, size)))

    assert len(found) == size
    assert cost < 200 + size * 20


def test_leasing_while_many_are_deferred_never_walks_them(crowded: PostgresQueueBackend) -> None:
    """The crowd has a higher priority than these, and is not due."""
    add_jobs(crowded.open_store(), 20, prefix="low")

    assert pages(crowded, lambda store: take(store, 10)) < 10 * 50
