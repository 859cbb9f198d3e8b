"""The entity-store contracts, bound to SQLite, and its many users at once."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest

from embed_pipeline.domain.collection import Collection
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline.stores.graph.entity_store import GraphEntityStore
from embed_pipeline.stores.sqlite.graph.backend import SqliteGraph
from embed_pipeline_tests.clocks import FakeClock
from embed_pipeline_tests.contracts.binding import GRAPH_CONTRACTS, bind
from embed_pipeline_tests.contracts.entity_store.scene import (
    MODEL,
    add,
    coverage_of,
    embed,
    new,
    register,
    stored,
    uid,
    uids,
    vector,
    write,
)
from embed_pipeline_tests.stores.sqlite_graph import SqliteGraphBackend


@pytest.fixture
def backend(tmp_path: Path, clock: FakeClock) -> Iterator[SqliteGraphBackend]:
    backend = SqliteGraphBackend(tmp_path / "graph.sqlite", clock)
    yield backend
    backend.close()


@pytest.fixture
def store(backend: SqliteGraphBackend) -> EntityStore:
    store = backend.open_store()
    store.probe()  # the file is made on first use, and strangers need it
    return store


@pytest.fixture
def second(backend: SqliteGraphBackend) -> EntityStore:
    return backend.open_store()


bind(globals(), GRAPH_CONTRACTS)


def _create(path: Path, numbers: range) -> list[str]:
    """What one of several creators did; it opens the file itself, as a process would."""
    store = GraphEntityStore(SqliteGraph(path, mapping=Collection()))
    register(store)
    created = store.create_entities([new(n) for n in numbers], model=MODEL)
    store.close()
    return [one.entity.uid for one in created if not one.existing]


class TestConcurrency:
    @pytest.mark.parametrize("kind", ["threads", "processes"])
    def test_concurrent_creators_create_each_entity_once(
        self, backend: SqliteGraphBackend, kind: str
    ) -> None:
        spawn = multiprocessing.get_context("spawn")
        pools: dict[str, Callable[[], ThreadPoolExecutor | ProcessPoolExecutor]] = {
            "threads": lambda: ThreadPoolExecutor(8),
            "processes": lambda: ProcessPoolExecutor(2, mp_context=spawn),
        }
        overlapping = [range(n, n + 60) for n in range(0, 240, 20)]

        with pools[kind]() as pool:
            results = list(pool.map(_create, [backend.path] * len(overlapping), overlapping))

        created = [key for result in results for key in result]
        assert sorted(created) == uids(range(280))
        assert coverage_of(backend.open_store(), model=MODEL).missing == 280

    def test_threads_share_one_store(self, store: EntityStore) -> None:
        register(store)

        def work(number: int) -> None:
            entities = add(store, *range(number * 10, number * 10 + 10))
            embed(store, *entities)
            store.search(vector(), model=MODEL)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(24)))

        assert coverage_of(store, model=MODEL).embedded == 240

    def test_writer_and_changer_never_leave_a_wrong_vector_unmarked(
        self, store: EntityStore, second: EntityStore, backend: SqliteGraphBackend
    ) -> None:
        register(store)
        add(store, 1)

        def change() -> None:
            for n in range(60):
                second.upsert_entities([new(1, f"text {n}")], model=MODEL)

        def write_what_is_read() -> None:
            for _ in range(60):
                store.write_vectors([write(stored(store, uid(1)))], model=MODEL)

        with ThreadPoolExecutor(2) as pool:
            for task in [pool.submit(change), pool.submit(write_what_is_read)]:
                task.result()

        is_current = store.embedded_versions([uid(1)], model=MODEL).get(uid(1)) == (
            stored(store, uid(1)).version
        )
        assert backend.is_marked(uid(1)) is not is_current
