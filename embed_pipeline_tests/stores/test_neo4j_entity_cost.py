"""What the graph's queries cost in Neo4j, counted in database hits where a clock would lie."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import neo4j.vector
import numpy as np
import pytest

from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.embedding import Bookmark
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline.stores.graph import discovery
from embed_pipeline.stores.graph.discovery import START
from embed_pipeline.stores.neo4j.driver.database import Tx
from embed_pipeline.stores.neo4j.graph import cypher
from embed_pipeline.stores.neo4j.graph import search as vector_search
from embed_pipeline.stores.neo4j.graph.mapping import filled
from embed_pipeline_tests.clocks import FakeClock
from embed_pipeline_tests.contracts.entity_store.scene import (
    MODEL,
    add,
    keys,
    register,
    uid,
    uids,
    vector,
)
from embed_pipeline_tests.contracts.entity_store.search import embed_with
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.stores.neo4j_graph import Neo4jGraphBackend, empty
from embed_pipeline_tests.stores.neo4j_stores import (
    bolt_version,
    kinds_of_vectors,
    statements_sent,
)

FEW, EMBEDDED = 3_000, 50_000
NOISE = 10
NEWEST = 2_000
"""Nodes among which missing ones are looked for first."""

# Too short for the vector index, which would take longer than all tests here.
FILL = """
UNWIND range($first, $last - 1) AS n
CALL (n) {
    CREATE (:Entity:Embedded {uid: 'e' + right('0000' + toString(n), 5), name: 'entity ' + n,
                     embedding: [1.0], embedding_model: $model,
                     embedding_version: 'v' + n})
} IN TRANSACTIONS OF 5000 ROWS
"""

PARAMETERS = {
    "after": "",
    "size": 20,
    "window": 50,
    "missing": 1,
    "limit": 20,
    "name": "entity 7",
    "uids": ["e00007", "e00008"],
    "versions": ["v7", "v8", "unknown"],
    "model": MODEL,
    "dimensions": 4,
    "vectors": [],
    "rows": [],
    "now": 0,
}


FLAT = {
    "counts": cypher.COUNT_LABELS,
    "a page of the audit": cypher.NEXT_WITH_LABELS,
    "a window of discovery": cypher.MISSING_IN_WINDOW,
    "a name": cypher.FIND_BY_NAME,
    "entities": cypher.READ_ENTITIES,
    "versions": cypher.EMBEDDED_VERSIONS,
    "vectors to reuse": cypher.VECTORS_OF_VERSIONS,
}
"""Statements that cost the same in a graph of any size."""


def costs(server: BedServer) -> dict[str, int]:
    server.run("CALL db.awaitIndexes(120)")
    return {name: _hits(_profile(server, statement)) for name, statement in FLAT.items()}


@pytest.fixture(scope="module")
def costs_in_a_small_graph(neo4j_graph: BedServer) -> dict[str, int]:
    empty(neo4j_graph)
    store = Neo4jGraphBackend(neo4j_graph, FakeClock()).open_store()
    register(store)
    store.close()
    neo4j_graph.run(FILL, first=0, last=FEW, model=MODEL)
    return costs(neo4j_graph)


@pytest.fixture(scope="module")
def full(neo4j_graph: BedServer, costs_in_a_small_graph: dict[str, int]) -> BedServer:
    """Many embedded, unmarked entities; tests here only read them."""
    store = Neo4jGraphBackend(neo4j_graph, FakeClock()).open_store()
    neo4j_graph.run(FILL, first=FEW, last=EMBEDDED, model=MODEL)
    add(store, *range(90_000, 90_100))
    store.close()
    neo4j_graph.run("CALL db.awaitIndexes(120)")
    return neo4j_graph


@pytest.fixture
def store(full: BedServer) -> Iterator[EntityStore]:
    backend = Neo4jGraphBackend(full, FakeClock())
    yield backend.open_store()
    backend.close()


class TestAmongManyEmbedded:
    def test_a_statement_costs_the_same_in_a_small_graph_and_in_a_large_one(
        self, full: BedServer, costs_in_a_small_graph: dict[str, int]
    ) -> None:
        in_a_large_one = costs(full)

        grown = {
            name: (few, in_a_large_one[name])
            for name, few in costs_in_a_small_graph.items()
            if in_a_large_one[name] > few + NOISE
        }
        assert grown == {}

    @pytest.mark.parametrize("after", ["", uid(90_050)])
    def test_marked_discovery_touches_in_proportion_to_what_it_returns(
        self, full: BedServer, after: str
    ) -> None:
        few = _hits(_profile(full, cypher.MARKED_WITH_FACTS, after=after, size=5))
        more = _hits(_profile(full, cypher.MARKED_WITH_FACTS, after=after, size=40))

        assert few <= 5 * 20
        assert more <= 40 * 20

    def test_labels_are_counted_by_the_count_store(self, full: BedServer) -> None:
        counted = _profile(full, cypher.COUNT_LABELS)

        assert _hits(counted) == 6
        assert {name for name, _ in _operators(counted)} == {
            "ProduceResults",
            "Apply",
            "NodeCountFromCountStore",
        }

    def test_missing_ones_that_are_the_newest_are_found_without_looking_at_the_others(
        self, full: BedServer
    ) -> None:
        plan = _profile(full, cypher.MISSING, missing=100)

        assert _hits(plan) <= 4 * NEWEST
        assert "Top" in {name for name, _ in _operators(plan)}
        assert "Sort" not in {name for name, _ in _operators(plan)}

    def test_few_missing_are_found_by_labels_and_no_property_of_others_is_read(
        self, full: BedServer
    ) -> None:
        plan = _profile(full, cypher.MISSING, missing=101)

        assert 2 * EMBEDDED < _hits(plan) <= 2 * EMBEDDED + 4 * NEWEST

    def test_pages_go_on_where_the_last_one_ended(self, full: BedServer) -> None:
        near = _hits(_profile(full, cypher.NEXT_WITH_LABELS, after="", size=50))
        far = _hits(_profile(full, cypher.NEXT_WITH_LABELS, after=uid(49_000), size=50))

        assert abs(near - far) <= 10
        assert near <= 50 * 20

    @pytest.mark.parametrize(
        ("statement", "operator", "index"),
        [
            (cypher.MARKED_WITH_FACTS, "NodeIndexSeekByRange", "NeedsEmbedding(uid)"),
            (cypher.MISSING_IN_WINDOW, "NodeUniqueIndexSeekByRange", "Entity(uid)"),
            (cypher.NEXT_WITH_LABELS, "NodeUniqueIndexSeekByRange", "Entity(uid)"),
            (cypher.FIND_BY_NAME, "NodeIndexSeek", "Entity(name)"),
            (cypher.READ_ENTITIES, "NodeUniqueIndexSeek", "Entity(uid)"),
            (cypher.EMBEDDED_VERSIONS, "NodeUniqueIndexSeek", "Entity(uid)"),
            (cypher.VECTORS_OF_VERSIONS, "NodeIndexSeek", "Entity(embedding_version)"),
        ],
    )
    def test_discovery_reuse_and_names_use_their_index_in_its_order(
        self, full: BedServer, statement: str, operator: str, index: str
    ) -> None:
        operators = list(_operators(_profile(full, statement)))

        assert any(name == operator and index in details for name, details in operators)
        assert not {name for name, _ in operators} & {"Sort", "NodeByLabelScan", "AllNodesScan"}

    @pytest.mark.parametrize("after", ["", uid(49_000)])
    def test_read_of_a_window_touches_no_more_than_that(self, full: BedServer, after: str) -> None:
        cost = _hits(_profile(full, cypher.MISSING_IN_WINDOW, after=after, window=100))

        assert 100 <= cost <= 100 * 10

    def test_many_missing_are_found_by_a_short_transaction_per_window(
        self, store: EntityStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(discovery, "FEW", 0)
        sent = statements_sent(monkeypatch)
        nothing_marked = Bookmark(uid=START, marked=False)

        found = store.entities_without_embeddings(20, model=MODEL, after=nothing_marked)

        windows = [asked["window"] for _, asked in sent if "window" in asked]
        assert windows[:5] == [20, 80, 320, 1_280, discovery.WINDOW]
        assert set(windows[5:]) == {discovery.WINDOW}
        assert sum(windows) > EMBEDDED
        assert found.entities == ()

    def test_discovery_with_nothing_unmarked_missing_is_three_short_reads(
        self, store: EntityStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        after = Bookmark(uid=uid(90_089), marked=True)
        sent = statements_sent(monkeypatch)

        found = store.entities_without_embeddings(20, model=MODEL, after=after)

        assert keys(found.entities) == uids(range(90_090, 90_100))
        assert found.bookmark is None
        assert len(sent) == 4, "models, marked, counts, missing"

    @pytest.mark.parametrize("entity_type", [None, "rare"])
    def test_search_costs_the_same_in_a_large_graph(
        self,
        full: BedServer,
        store: EntityStore,
        monkeypatch: pytest.MonkeyPatch,
        entity_type: str | None,
    ) -> None:
        monkeypatch.setattr(vector_search, "COMPARE_ALL", -1)
        sent = statements_sent(monkeypatch)

        store.search(vector(), model=MODEL, entity_type=entity_type)

        asked = [(said, given) for said, given in sent if "SHOW" not in said]
        assert len(asked) >= 3, "models, counts, index"
        assert sum(_hits(_profiled(full, said, given)) for said, given in asked) <= 50


class TestVectors:
    @pytest.fixture
    def store(self, neo4j_graph: BedServer, clock: FakeClock) -> Iterator[EntityStore]:
        empty(neo4j_graph)
        backend = Neo4jGraphBackend(neo4j_graph, clock)
        yield backend.open_store()
        backend.close()

    def test_packed_and_listed_vectors_are_stored_alike(
        self, store: EntityStore, neo4j_graph: BedServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        numbers = np.random.default_rng(1).standard_normal((2, 4)).astype(np.float32)
        speaks_vectors = bolt_version(neo4j_graph) >= (6, 0)
        sent = statements_sent(monkeypatch)

        embed_with(store, {1: numbers[0]})
        monkeypatch.setattr(Tx, "speaks_vectors", False)
        embed_with(store, {2: numbers[0]})

        assert kinds_of_vectors(sent) == [neo4j.vector.Vector if speaks_vectors else list, list]
        rows = neo4j_graph.run(
            "MATCH (e:Entity) RETURN e.embedding AS numbers, valueType(e.embedding) AS type"
        )
        assert rows[0] == rows[1]
        assert np.array_equal(np.array(rows[0]["numbers"], dtype=np.float32), numbers[0])

    def test_sent_vectors_are_let_go_without_the_garbage_collector(
        self, store: EntityStore
    ) -> None:
        """The next collection may be a hundred megabytes later."""
        gc.collect()
        gc.disable()
        try:
            embed_with(store, {1: vector(), 2: vector()})
            kept = [it for it in gc.get_objects() if isinstance(it, neo4j.vector.Vector)]
        finally:
            gc.enable()

        assert kept == []

    def test_index_finds_what_comparing_all_finds(
        self, store: EntityStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        numbers = np.random.default_rng(3).standard_normal((400, 4)).astype(np.float32)
        embed_with(store, dict(enumerate(numbers[:390])), entity_type="common")
        embed_with(store, dict(enumerate(numbers[390:], start=390)), entity_type="rare")
        asked = [(10, None), (10, "common"), (5, "rare")]
        compared = [_searched(store, numbers[7], limit, of) for limit, of in asked]

        monkeypatch.setattr(vector_search, "COMPARE_ALL", 0)
        indexed = [_searched(store, numbers[7], limit, of) for limit, of in asked]

        assert indexed == compared
        assert [len(hits) for hits in compared] == [10, 10, 5]


def _searched(
    store: EntityStore, query: Any, limit: int, entity_type: str | None
) -> list[tuple[str, float]]:
    result = store.search(query, model=MODEL, limit=limit, entity_type=entity_type)
    return [(hit.entity.uid, hit.score) for hit in result.hits]


def _profile(server: BedServer, statement: str, **changed: object) -> dict[str, Any]:
    return _profiled(server, filled(statement, Collection()), {**PARAMETERS, **changed})


def _profiled(server: BedServer, query: str, parameters: dict[str, Any]) -> dict[str, Any]:
    with server.driver.session(database=server.database) as session:
        profile = session.run("PROFILE " + query, parameters).consume().profile
    assert profile is not None
    return profile


def _hits(plan: dict[str, Any]) -> int:
    return int(plan["args"].get("DbHits", 0)) + sum(map(_hits, plan.get("children", ())))


def _plans(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("children", ()):
        yield from _plans(child)


def _operators(plan: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for part in _plans(plan):
        yield part["operatorType"].split("@")[0], part["args"].get("Details", "")
