"""What the graph's queries cost, counted where a clock would lie."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.partition import PartitionCounts
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline.stores.sqlite.graph import search as vector_search
from embed_pipeline.stores.sqlite.graph import sql
from embed_pipeline.stores.sqlite.graph.mapping import filled
from embed_pipeline_tests.clocks import FakeClock
from embed_pipeline_tests.contracts.entity_store.scene import (
    MODEL,
    add,
    add_embedded,
    new,
    register,
    uid,
    vector,
)
from embed_pipeline_tests.contracts.entity_store.search import embed_with
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


class TestCost:
    @pytest.mark.parametrize(
        ("statement", "index"),
        [
            (sql.MARKED_WITH_FACTS, "embedding_marked"),
            (sql.MISSING, "embedding_missing"),
            (sql.FIND_BY_NAME, "embedding_names"),
            (sql.VECTORS_OF_VERSIONS, "embedding_versions"),
        ],
    )
    def test_discovery_reuse_and_names_use_their_index(
        self, store: EntityStore, backend: SqliteGraphBackend, statement: str, index: str
    ) -> None:
        assert f"INDEX {index} (" in _plan(backend, statement)

    @pytest.mark.parametrize(
        "statement",
        [sql.READ_ENTITIES, sql.READ_WITH_FACTS, sql.EMBEDDED_VERSIONS, sql.VECTORS_OF_VERSIONS],
    )
    def test_list_parameters_drive_the_query(
        self, store: EntityStore, backend: SqliteGraphBackend, statement: str
    ) -> None:
        plan = _plan(backend, statement)

        assert plan.startswith("SCAN asked")
        assert plan.count("SCAN ") == 1

    @pytest.mark.parametrize("embedded", [500, 50_000])
    def test_counts_and_discovery_do_not_walk_the_embedded_graph(
        self, store: EntityStore, backend: SqliteGraphBackend, embedded: int
    ) -> None:
        with backend.raw() as connection:
            _fill(connection, embedded)
        register(store)
        assert _steps(backend, sql.MISSING, rows=0) <= 500, "most of it to read the schema"

        add(store, *range(90_000, 90_020))
        for number in range(80_000, 80_020):
            backend.insert(uid(number), name="theirs", observations=None)

        assert _steps(backend, sql.MARKED_WITH_FACTS) < 2_000
        assert _steps(backend, sql.MISSING) < 2_000
        assert _steps(backend, sql.COUNT_LABELS, rows=1) <= 500
        assert store.counts(model=MODEL) == PartitionCounts(
            entities=embedded + 40, embedded=embedded, marked=20
        )

    def test_ten_thousand_entities_are_created_in_seconds(self, store: EntityStore) -> None:
        entities = [new(n) for n in range(10_000)]

        started = time.monotonic()
        store.create_entities(entities, model=MODEL)

        assert time.monotonic() - started < 5  # a tenth of it on an idle machine

    def test_search_by_chunks_finds_what_one_scan_finds(
        self, store: EntityStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rng = np.random.default_rng(3)
        numbers = rng.integers(-2, 3, size=(200, 4)).astype(np.float32)
        embed_with(store, {n: row for n, row in enumerate(numbers) if row.any()})
        whole = store.search(vector(), model=MODEL, limit=50)

        monkeypatch.setattr(vector_search, "CHUNK_ROWS", 7)
        chunked = store.search(vector(), model=MODEL, limit=50)

        assert chunked == whole
        assert len(whole.hits) == 50

    def test_zero_vector_of_another_program_breaks_no_search(
        self, store: EntityStore, backend: SqliteGraphBackend
    ) -> None:
        add_embedded(store, 1, 2)
        backend.replace_vector(uid(1), vector(0, 0, 0, 0))

        hits = store.search(vector(), model=MODEL).hits

        assert [(hit.entity.uid, hit.score) for hit in hits] == [(uid(2), 1.0), (uid(1), 0.0)]


PARAMETERS = {
    "property": "embedding",
    "after": "",
    "size": 20,
    "limit": 20,
    "name": "x",
    "uids": "[]",
    "versions": "[]",
    "model": MODEL,
    "dimensions": 4,
}


def _plan(backend: SqliteGraphBackend, statement: str) -> str:
    query = "EXPLAIN QUERY PLAN " + filled(statement, Collection())
    with backend.raw() as connection:
        return "; ".join(row[3] for row in connection.execute(query, PARAMETERS))


def _steps(backend: SqliteGraphBackend, statement: str, *, rows: int = 20) -> int:
    """How many steps SQLite's machine takes, to the nearest ten."""
    tens = 0

    def count() -> int:
        nonlocal tens
        tens += 1
        return 0

    with backend.raw() as connection:
        connection.set_progress_handler(count, 10)
        found = connection.execute(filled(statement, Collection()), PARAMETERS).fetchall()
    assert len(found) == rows
    return tens * 10


def _fill(connection: sqlite3.Connection, count: int) -> None:
    """Embedded, unmarked entities, made inside the database because they are many."""
    connection.executescript(
        f"""
        BEGIN;
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})
        INSERT INTO Entity (uid, name, needs_embedding, embedded)
        SELECT printf('e%05d', i), 'entity ' || i, 0, 1 FROM n;
        INSERT INTO embedding_vectors (uid, vector_property, model, version, embedded_at, vector)
        SELECT uid, 'embedding', '{MODEL}', 'v', 0, zeroblob(16) FROM Entity;
        COMMIT;
        """
    )
