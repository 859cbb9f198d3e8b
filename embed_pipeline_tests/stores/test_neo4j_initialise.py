"""`embed-pipeline init` on two servers: it refuses before it writes, and makes what is missing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Barrier

import pytest

from embed_pipeline import stores
from embed_pipeline.domain.collection import Collection
from embed_pipeline.errors import ConfigurationError, SchemaMissing
from embed_pipeline.stores import neo4j, sqlite
from embed_pipeline.stores.config import StoreConfig
from embed_pipeline.stores.neo4j import open_graph
from embed_pipeline.stores.neo4j.graph import search as vector_search
from embed_pipeline_tests.contracts.entity_store.scene import MODEL, add_embedded, uid, vector
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.stores.neo4j_stores import config_of, initialise, server_of

PICTURE = "MATCH (n) RETURN labels(n) AS labels, properties(n) AS properties ORDER BY n.uid"
RULES = "SHOW INDEXES YIELD name, type WHERE type <> 'LOOKUP' RETURN name ORDER BY name"


@pytest.fixture
def config(neo4j_queue: BedServer, neo4j_graph: BedServer) -> StoreConfig:
    """Of two databases as on their first day."""
    neo4j_queue.wipe_schema()
    neo4j_graph.wipe_schema()
    return config_of(server_of(neo4j_queue), server_of(neo4j_graph))


def content(*servers: BedServer) -> list[object]:
    return [server.run(statement) for server in servers for statement in (PICTURE, RULES)]


class TestRefusals:
    def test_one_database_under_two_addresses_is_refused_and_nothing_is_written(
        self, config: StoreConfig, neo4j_queue: BedServer
    ) -> None:
        elsewhere = neo4j_queue.uri.replace("127.0.0.1", "localhost")
        assert elsewhere != neo4j_queue.uri
        same = config_of(server_of(neo4j_queue), server_of(neo4j_queue, uri=elsewhere))
        neo4j_queue.run("CREATE (:Thing {uid: 'a'})")
        before = content(neo4j_queue)

        with pytest.raises(ConfigurationError, match="a database each") as caught:
            initialise(same)

        assert len(caught.value.problems) == 1
        assert content(neo4j_queue) == before

    def test_exchanged_addresses_are_refused_and_nothing_is_written(
        self, config: StoreConfig, neo4j_queue: BedServer, neo4j_graph: BedServer
    ) -> None:
        exchanged = config_of(server_of(neo4j_graph), server_of(neo4j_queue))
        neo4j_graph.run("CREATE (:Entity {uid: 'a', name: 'Ada'})")
        before = content(neo4j_queue, neo4j_graph)

        with pytest.raises(ConfigurationError, match="may be exchanged") as caught:
            initialise(exchanged)

        assert len(caught.value.problems) == 1
        assert content(neo4j_queue, neo4j_graph) == before

    def test_graph_that_is_refused_leaves_the_queue_unwritten(
        self, config: StoreConfig, neo4j_queue: BedServer, neo4j_graph: BedServer
    ) -> None:
        neo4j_graph.run("CREATE (:QueueSchema {name: 'queue', version: 1})")

        with pytest.raises(ConfigurationError, match="database of its own"):
            initialise(config)

        assert content(neo4j_queue) == [[], []]

    def test_label_that_the_queue_uses_too_is_no_reason_to_refuse_it_later(
        self, config: StoreConfig, neo4j_queue: BedServer
    ) -> None:
        budgets = replace(config, collections=(Collection(label="Budget"),))
        initialise(budgets)
        neo4j_queue.run("CREATE (:Budget {provider: 'openai'})")

        initialise(budgets)


class TestRefusalsOfMixedPairs:
    def test_a_queue_is_not_put_among_entities_when_the_graph_is_in_sqlite(
        self, config: StoreConfig, neo4j_queue: BedServer, tmp_path: Path
    ) -> None:
        neo4j_queue.run("CREATE (:Entity {uid: 'a', name: 'Ada'})")
        before = content(neo4j_queue)

        with pytest.raises(ConfigurationError, match="holds nodes labelled Entity"):
            stores.initialise(neo4j, sqlite, replace(config, home=tmp_path))

        assert content(neo4j_queue) == before
        assert list(tmp_path.iterdir()) == []

    def test_the_graph_is_not_put_into_a_queues_database_when_the_queue_is_in_sqlite(
        self, config: StoreConfig, neo4j_graph: BedServer, tmp_path: Path
    ) -> None:
        neo4j_graph.run("CREATE (:QueueSchema {name: 'queue', version: 1})")

        with pytest.raises(ConfigurationError, match="database of its own"):
            stores.initialise(sqlite, neo4j, replace(config, home=tmp_path))

        assert list(tmp_path.iterdir()) == []


def test_two_that_begin_at_once_on_an_empty_pair_both_succeed(config: StoreConfig) -> None:
    start = Barrier(2)

    def begin(_: int) -> list[str]:
        start.wait()
        return initialise(config)

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(begin, range(2))

    assert first == second
    with closing(open_graph(config)) as store:
        assert store.models() == ()


def test_vector_index_that_was_dropped_is_made_again(
    config: StoreConfig, neo4j_graph: BedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_search, "COMPARE_ALL", 0)
    initialise(config)
    with closing(open_graph(config)) as store:
        add_embedded(store, 1)
        neo4j_graph.run("DROP INDEX embedding_index")
        with pytest.raises(SchemaMissing, match="embed-pipeline init"):
            store.search(vector(), model=MODEL)

        initialise(config)

        (hit,) = store.search(vector(), model=MODEL).hits
    assert hit.entity.uid == uid(1)
