"""What a call costs on SQLite must not follow the size of the queue.

Counted in steps of SQLite's virtual machine, which are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from embed_pipeline.domain.job import EntityUid, JobId, JobStatus
from embed_pipeline.stores.encoding import to_ms
from embed_pipeline.stores.queue.job_store import QueueJobStore
from embed_pipeline.stores.queue.transaction import Transaction
from embed_pipeline_tests.clocks import DAY, HOUR, FakeClock
from embed_pipeline_tests.contracts.job_store.scene import MODEL, add_jobs, take
from embed_pipeline_tests.stores.sqlite_queue import SqliteQueueBackend, connection_of

CROWD = 200_000
FINE = 10  # steps between two calls of the progress handler: the resolution of the count

INSERT_CROWD = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :count)
INSERT INTO embed_job (id, entity_uid, model, version, status, priority, created_at, available_at,
                       processed_at, lock_owner, lock_until, lease_token, max_attempts)
SELECT :status || i, :status || i, :model, 'v1', :status, 9, :now, :available_at,
       :processed_at, :owner, :until, :owner, 3 FROM n
"""


@pytest.fixture
def backend(tmp_path: Path, clock: FakeClock) -> Iterator[SqliteQueueBackend]:
    backend = SqliteQueueBackend(tmp_path / "queue.sqlite", clock)
    yield backend
    backend.close()


def crowd(
    backend: SqliteQueueBackend,
    status: str,
    *,
    available_in: timedelta = timedelta(0),
    ended: bool = False,
    leased: bool = False,
) -> None:
    backend.open_store()
    now = backend.clock.now()
    with backend.raw() as connection:
        connection.execute(
            INSERT_CROWD,
            {
                "count": CROWD,
                "status": status,
                "model": MODEL,
                "now": to_ms(now),
                "available_at": to_ms(now + available_in),
                "processed_at": to_ms(now) if ended else None,
                "owner": "run-1" if leased else None,
                "until": to_ms(now + HOUR) if leased else None,
            },
        )


def steps(backend: SqliteQueueBackend, call: Callable[[QueueJobStore], object]) -> int:
    """Virtual-machine steps of one call on a store of its own."""
    store = backend.open_store()
    counted = 0

    def tick() -> int:
        nonlocal counted
        counted += FINE
        return 0

    with connection_of(store) as connection:
        connection.set_progress_handler(tick, FINE)
    call(store)
    with connection_of(store) as connection:
        connection.set_progress_handler(None, 0)
    return counted


def test_lease_never_walks_deferred_jobs_of_a_higher_priority(
    backend: SqliteQueueBackend,
) -> None:
    add_jobs(backend.open_store(), 20)
    alone = steps(backend, lambda store: take(store, 10))
    crowd(backend, "pending", available_in=DAY)

    crowded = steps(backend, lambda store: take(store, 10))

    assert crowded <= alone + 200
    assert crowded < 5_000


def test_lease_costs_the_same_in_a_long_queue(backend: SqliteQueueBackend) -> None:
    add_jobs(backend.open_store(), 20)
    alone = steps(backend, lambda store: take(store, 10))
    crowd(backend, "pending")

    assert steps(backend, lambda store: take(store, 10)) <= alone + 500


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteQueueBackend]:
    """A queue full of jobs, none of which is due, stale or old."""
    path = tmp_path_factory.mktemp("crowded") / "queue.sqlite"
    backend = SqliteQueueBackend(path, FakeClock())
    crowd(backend, "pending", available_in=DAY)
    crowd(backend, "completed", ended=True)
    crowd(backend, "processing", leased=True)
    yield backend
    backend.close()


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda store: store.recover_stale(), id="recover_stale"),
        pytest.param(lambda store: store.recover_owner("nobody"), id="recover_owner"),
        pytest.param(lambda store: store.cleanup(older_than=DAY), id="cleanup"),
        pytest.param(lambda store: store.next_due(model=MODEL), id="next_due"),
        pytest.param(lambda store: store.live_owners(), id="live_owners"),
        pytest.param(lambda store: store.silence(), id="silence"),
        pytest.param(lambda store: take(store, 10), id="lease"),
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
    crowded: SqliteQueueBackend, call: Callable[[QueueJobStore], object]
) -> None:
    assert steps(crowded, call) < 2_500


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
    crowded: SqliteQueueBackend, page: Callable[[QueueJobStore, int], Sequence[object]], size: int
) -> None:
    found: list[object] = []

    cost = steps(crowded, lambda store: found.extend(page(store, size)))

    assert len(found) == size
    assert cost < 1_000 + size * 150


def test_events_are_not_read_by_transitions(backend: SqliteQueueBackend) -> None:
    store = backend.open_store()
    add_jobs(store, 40)
    fresh = steps(backend, lambda store: take(store, 5))

    def record_many(transaction: Transaction) -> None:
        for _ in range(2_000):
            transaction.record("jobs.leased")

    store.database.write(record_many)

    assert steps(backend, lambda store: take(store, 5)) <= fresh + 200
