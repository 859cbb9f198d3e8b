"""The server keeps the plans that it once made, so they must not depend on the day's numbers."""

from __future__ import annotations

import pytest

from embed_pipeline.domain.collection import Collection
from embed_pipeline.stores.graph.entity_store import GraphEntityStore
from embed_pipeline.stores.neo4j.graph import cypher
from embed_pipeline.stores.neo4j.graph.backend import Neo4jGraph
from embed_pipeline.stores.neo4j.graph.mapping import filled
from embed_pipeline.stores.neo4j.queue.cypher import control as cypher_queue
from embed_pipeline.stores.neo4j.queue.cypher import jobs as cypher_jobs
from embed_pipeline.stores.neo4j.queue.cypher import leased as cypher_holding
from embed_pipeline.stores.neo4j.queue.cypher import queries as cypher_queries
from embed_pipeline.stores.neo4j.queue.cypher import recovery as cypher_recovery
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.stores.neo4j_graph import database_of, empty
from embed_pipeline_tests.stores.neo4j_plans import scanned, statements_of, ways
from embed_pipeline_tests.stores.neo4j_queue import DELETE_ALL, prepared

MODEL = "mock/mock@8"

MANY_JOBS = """
UNWIND range(1, 20000) AS n
CALL (n) {
    WITH n, ['pending', 'processing', 'completed', 'failed'][n % 4] AS status
    CREATE (:EmbedJob:TrackedJob {
        id: 'j' + n, entity_uid: 'e' + n, model: $model, version: 'v', status: status,
        priority: 5, rank: CASE status WHEN 'pending' THEN -5 END, tier: 0, created_at: n,
        available_at: n, attempts: 0, max_attempts: 3,
        lock_owner: CASE status WHEN 'processing' THEN 'o' + n % 3 END,
        lease_token: CASE status WHEN 'processing' THEN 't' + n % 30 END,
        lock_until: CASE status WHEN 'processing' THEN n END,
        processed_at: CASE WHEN status IN ['completed', 'failed'] THEN n END,
        ended_at: CASE WHEN status IN ['completed', 'failed'] THEN n END
    })
} IN TRANSACTIONS OF 5000 ROWS
"""

MANY_ENTITIES = """
UNWIND range(1, 20000) AS n
CALL (n) {
    CREATE (e:Entity {uid: 'e' + n, name: 'entity ' + n, embedding_version: 'v' + n,
                      embedding_model: $model, embedding: [1.0]})
    FOREACH (_ IN CASE n % 4 WHEN 0 THEN [1] ELSE [] END | SET e:NeedsEmbedding)
} IN TRANSACTIONS OF 5000 ROWS
"""


def register(server: BedServer) -> None:
    """With the first model the indexes of its vectors are made."""
    database = database_of(server)
    store = GraphEntityStore(Neo4jGraph(database, mapping=Collection()))
    store.register_first_model(MODEL, dimensions=8)
    store.close()


@pytest.fixture
def queue_server(neo4j_queue: BedServer) -> BedServer:
    return neo4j_queue


@pytest.fixture
def graph_server(neo4j_graph: BedServer) -> BedServer:
    return neo4j_graph


def test_jobs_are_found_the_same_way_in_an_empty_queue_and_in_a_full_one(
    queue_server: BedServer,
) -> None:
    statements = statements_of(
        cypher_jobs, cypher_holding, cypher_recovery, cypher_queries, cypher_queue
    )
    prepared(queue_server)
    queue_server.run(DELETE_ALL)
    in_an_empty_one = ways(queue_server, statements)

    queue_server.run(MANY_JOBS, model=MODEL)

    assert ways(queue_server, statements) == in_an_empty_one
    assert "LEASE_JOBS" in in_an_empty_one
    assert scanned(in_an_empty_one, "EmbedJob") == []


def test_entities_are_found_the_same_way_in_an_empty_graph_and_in_a_full_one(
    graph_server: BedServer,
) -> None:
    found = statements_of(cypher)
    statements = {name: filled(text, Collection()) for name, text in found.items()}
    empty(graph_server)
    register(graph_server)
    in_an_empty_one = ways(graph_server, statements)

    graph_server.run(MANY_ENTITIES, model=MODEL)

    assert ways(graph_server, statements) == in_an_empty_one
    assert "WRITE_VECTORS" in in_an_empty_one
    # Its scan ends at the newest nodes; their number is kept by test_neo4j_entity_cost.
    assert scanned(in_an_empty_one, ":Entity") == ["MISSING"]
