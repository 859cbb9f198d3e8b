"""What other programs change is marked at once: by an APOC trigger, or by their time of change."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from embed_pipeline.domain.check import Condition
from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.recipe import parse_part
from embed_pipeline.errors import RequestError
from embed_pipeline.stores import neo4j, sqlite
from embed_pipeline.stores.config import StoreConfig
from embed_pipeline.stores.neo4j.graph import changes, cypher
from embed_pipeline.stores.neo4j.graph.backend import Neo4jGraph
from embed_pipeline.stores.neo4j.graph.mapping import filled
from embed_pipeline.stores.neo4j.setup import schema, trigger
from embed_pipeline_tests.clocks import FakeClock
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.stores.neo4j_graph import Neo4jGraphBackend, database_of, empty
from embed_pipeline_tests.stores.neo4j_stores import config_of, server_of

MAPPING = Collection()
BY_TIME = replace(MAPPING, changed_at="changedAt")

MARKED = "MATCH (e:NeedsEmbedding) RETURN e.uid AS uid ORDER BY uid"
UNMARK = "MATCH (e:NeedsEmbedding) REMOVE e:NeedsEmbedding"

PATIENCE = 20.0


def marked(server: BedServer) -> list[object]:
    found = [row["uid"] for row in server.run(MARKED)]
    server.run(UNMARK)
    return found


def config_for(server: BedServer) -> StoreConfig:
    return config_of(server_of(server), server_of(server))


def await_trigger(server: BedServer, *, installed: bool) -> None:
    """APOC reads the triggers of all databases again and again."""
    deadline = time.monotonic() + PATIENCE
    find = "CALL apoc.trigger.list() YIELD name RETURN name"
    while bool(server.run(find)) is not installed:
        assert time.monotonic() < deadline, "APOC does not read its triggers"


@pytest.mark.slow
class TestTrigger:
    @pytest.fixture(scope="class")
    @classmethod
    def server(cls, neo4j_swapped_graph: BedServer) -> Iterator[BedServer]:
        empty(neo4j_swapped_graph)
        neo4j.set_trigger(config_for(neo4j_swapped_graph), install=True)
        await_trigger(neo4j_swapped_graph, installed=True)
        yield neo4j_swapped_graph
        neo4j.set_trigger(config_for(neo4j_swapped_graph), install=False)
        await_trigger(neo4j_swapped_graph, installed=False)

    @pytest.fixture(autouse=True)
    def entities(self, server: BedServer) -> None:
        server.run("MATCH (n) WHERE NOT n:EmbeddingGraph DETACH DELETE n")
        server.run(
            "UNWIND range(1, 3) AS i"
            " CREATE (:Entity {uid: toString(i), name: 'name ' + i, observations: ['x'], age: i})"
        )
        assert marked(server) == ["1", "2", "3"], "new entities are marked"

    @pytest.mark.parametrize(
        ("change", "is_marked"),
        [
            ("SET e.name = 'other'", True),
            ("SET e.observations = ['x', 'y']", True),
            ("REMOVE e.observations", True),
            ("SET e.validTo = 5", True),
            ("SET e.embedding = [1.0, 2.0]", True),
            ("SET e.age = 99", False),
            ("SET e.name = e.name", False),
            ("SET e:Other", False),
            ("SET e.name = 'other' DETACH DELETE e", False),
        ],
    )
    def test_text_validity_and_vector_mark_their_entity_and_nothing_else_does(
        self, server: BedServer, change: str, is_marked: bool
    ) -> None:
        server.run("MATCH (e:Entity {uid: '2'}) " + change)

        assert marked(server) == (["2"] if is_marked else [])

    def test_a_node_that_becomes_an_entity_is_marked(self, server: BedServer) -> None:
        server.run("CREATE (:Person {uid: '9', name: 'late'})")
        assert marked(server) == []

        server.run("MATCH (e:Person) SET e:Entity")

        assert marked(server) == ["9"]

    def test_a_node_without_a_usable_key_is_left_alone(self, server: BedServer) -> None:
        server.run("CREATE (:Entity {uid: 7, name: 'an integer'}), (:Entity {name: 'no key'})")

        assert marked(server) == []

    def test_our_own_transactions_are_passed_over(self, server: BedServer) -> None:
        database = database_of(server)

        database.write(lambda tx: tx.all("MATCH (e:Entity {uid: '1'}) SET e.name = 'ours'"))

        database.close()
        assert marked(server) == []

    def test_doctor_reports_the_trigger_and_one_for_other_properties(
        self, server: BedServer
    ) -> None:
        database = database_of(server)

        found = trigger.check_trigger(database, MAPPING, ())
        other = trigger.check_trigger(database, replace(MAPPING, text=("name", "bio")), ())

        database.close()
        assert found.condition is Condition.OK
        assert "APOC trigger" in found.message
        assert other.condition is Condition.NOTE
        assert other.remedy == "embed-pipeline init --trigger"


BOOKS = {"path": "-[:WROTE]->(:Book)", "properties": ["title"], "order_by": "year"}
AUTHORS = Collection(text=("name", parse_part(BOOKS)))
CHANGED_NEIGHBOURS = "MATCH (n:NeighbourChanged) RETURN n.title AS title ORDER BY title"


@pytest.mark.slow
class TestTriggerOfNeighbours:
    @pytest.fixture(scope="class")
    @classmethod
    def server(cls, neo4j_swapped_graph: BedServer) -> Iterator[BedServer]:
        empty(neo4j_swapped_graph)
        config = replace(config_for(neo4j_swapped_graph), collections=(AUTHORS,))
        neo4j.set_trigger(config, install=True)
        await_trigger(neo4j_swapped_graph, installed=True)
        yield neo4j_swapped_graph
        neo4j.set_trigger(config, install=False)
        await_trigger(neo4j_swapped_graph, installed=False)

    @pytest.mark.parametrize(
        ("change", "entities", "neighbours"),
        [
            ("MATCH (b:Book) SET b.title = 'Ubik'", [], ["Ubik"]),
            ("MATCH (b:Book) SET b.year = 1965", [], ["Dune"]),
            ("MATCH (b:Book) SET b.pages = 400", [], []),
            ("MATCH (b:Book) REMOVE b:Book", [], ["Dune"]),
            ("MATCH (e:Entity {uid: 'b'}), (b:Book) CREATE (e)-[:WROTE]->(b)", ["b"], []),
            ("MATCH (e:Entity {uid: 'b'}), (b:Book) CREATE (e)-[:READ]->(b)", [], []),
            ("MATCH (:Entity)-[r:WROTE]->() DELETE r", ["a"], []),
            ("MATCH (b:Book) DETACH DELETE b", ["a"], []),
            ("MATCH (e:Entity {uid: 'a'}) SET e.name = 'Ada'", ["a"], []),
        ],
    )
    def test_relationships_mark_their_ends_and_neighbours_themselves(
        self, server: BedServer, change: str, entities: list[str], neighbours: list[str]
    ) -> None:
        server.run("MATCH (n) WHERE NOT n:EmbeddingGraph DETACH DELETE n")
        server.run(
            "CREATE (:Entity {uid: 'a', name: 'a'})-[:WROTE]->(:Book {title: 'Dune'})"
            " CREATE (:Entity {uid: 'b', name: 'b'})"
        )
        server.run("MATCH (n) REMOVE n:NeedsEmbedding:NeighbourChanged")

        server.run(change)

        found = [row["title"] for row in server.run(CHANGED_NEIGHBOURS)]
        assert (marked(server), found) == (entities, neighbours)


class TestDependents:
    """What a trigger has marked as a changed neighbour is passed on to the entities."""

    @pytest.fixture
    def graph(self, neo4j_graph: BedServer) -> Iterator[Neo4jGraph]:
        empty(neo4j_graph)
        neo4j_graph.run(
            "UNWIND range(1, 2500) AS n CREATE (:Entity {uid: 'e' + n, name: 'author'})"
        )
        neo4j_graph.run(
            "CREATE (b:Book:NeighbourChanged {title: 'Dune'}), (:Book {title: 'Ubik'})"
            "<-[:WROTE]-(:Entity {uid: 'other'}) WITH b MATCH (e:Entity) WHERE e.name = 'author'"
            " CREATE (e)-[:WROTE]->(b)"
        )
        graph = Neo4jGraph(database_of(neo4j_graph), mapping=AUTHORS)
        yield graph
        graph.close()

    def test_all_dependents_of_a_changed_neighbour_are_marked_and_no_others(
        self, graph: Neo4jGraph, neo4j_graph: BedServer
    ) -> None:
        waiting = graph.read(lambda tx: tx.all(cypher.COUNT_LABELS))[0]["marked"]

        first, second = graph.mark_changed(), graph.mark_changed()

        found = marked(neo4j_graph)
        assert (waiting, first, second) == (1, 2_500, 0)
        assert len(found) == 2_500
        assert "other" not in found
        assert neo4j_graph.run(CHANGED_NEIGHBOURS) == []

    def test_an_expansion_that_died_is_repeated(
        self, graph: Neo4jGraph, neo4j_graph: BedServer
    ) -> None:
        neo4j_graph.run(
            "MATCH (n:NeighbourChanged) SET n:NeighbourExpanding REMOVE n:NeighbourChanged"
        )

        assert graph.mark_changed() == 2_500

    def test_dependents_are_read_as_they_are_marked(self, neo4j_graph: BedServer) -> None:
        """An Eager operator would hold a million of them in memory first."""
        statement = filled(changes.EXPAND.replace("{hop}", "<-[:WROTE]-"), AUTHORS)

        with neo4j_graph.driver.session(database=neo4j_graph.database) as session:
            plan = session.run("EXPLAIN " + statement).consume().plan

        assert "Eager@" not in str(plan)


class TestNoTrigger:
    def test_a_server_without_apoc_refuses_it_with_a_sentence(self, neo4j_graph: BedServer) -> None:
        config = config_for(neo4j_graph)

        with pytest.raises(RequestError, match="has no APOC triggers"):
            neo4j.set_trigger(config, install=True)

        assert "no trigger" in neo4j.set_trigger(config, install=False)

    def test_sqlite_refuses_it_with_a_sentence(self, neo4j_graph: BedServer) -> None:
        config = config_for(neo4j_graph)

        with pytest.raises(RequestError, match="no other writers"):
            sqlite.set_trigger(config, install=True)


class TestTimeOfChange:
    """The property that EMBED_CHANGED_AT names."""

    @pytest.fixture
    def backend(self, neo4j_graph: BedServer, clock: FakeClock) -> Iterator[Neo4jGraphBackend]:
        empty(neo4j_graph)
        database = database_of(neo4j_graph)
        schema.prepare_graph(database, BY_TIME)
        database.close()
        backend = Neo4jGraphBackend(neo4j_graph, clock)
        yield backend
        backend.close()

    @pytest.fixture
    def graph(self, backend: Neo4jGraphBackend) -> Iterator[Neo4jGraph]:
        database = database_of(backend.server, clock=backend.clock)
        graph = Neo4jGraph(database, mapping=BY_TIME)
        graph.mark_changed()
        yield graph
        graph.close()

    def change(self, backend: Neo4jGraphBackend, uid: str, *, ago: float = 0, as_: str) -> None:
        at = round((backend.clock.now().timestamp() - ago) * 1000)
        value = "$at" if as_ == "integer" else "datetime({epochMillis: $at})"
        backend.server.run(
            f"MERGE (e:Entity {{uid: $uid}}) SET e.name = $uid, e.changedAt = {value}",
            uid=uid,
            at=at,
        )

    @pytest.mark.parametrize("as_", ["integer", "datetime"])
    def test_each_change_is_marked_once(
        self, backend: Neo4jGraphBackend, graph: Neo4jGraph, as_: str
    ) -> None:
        self.change(backend, "a", as_=as_)

        assert [graph.mark_changed(), graph.mark_changed()] == [1, 0]
        assert marked(backend.server) == ["a"]
        backend.clock.advance(timedelta(seconds=1))
        self.change(backend, "a", as_=as_)
        assert graph.mark_changed() == 1

    def test_a_transaction_that_commits_late_is_not_missed(
        self, backend: Neo4jGraphBackend, graph: Neo4jGraph
    ) -> None:
        backend.clock.advance(timedelta(seconds=600))
        self.change(backend, "early", as_="datetime")
        graph.mark_changed()

        self.change(backend, "late", ago=50, as_="datetime")

        assert graph.mark_changed() == 1
        assert marked(backend.server) == ["early", "late"]

    def test_what_changed_before_the_first_pass_is_left_to_discovery(
        self, backend: Neo4jGraphBackend
    ) -> None:
        self.change(backend, "old", ago=3_600, as_="integer")
        graph = Neo4jGraph(database_of(backend.server, clock=backend.clock), mapping=BY_TIME)

        assert graph.mark_changed() == 0

        graph.close()

    def test_changes_are_found_through_the_index(
        self, backend: Neo4jGraphBackend, graph: Neo4jGraph
    ) -> None:
        with backend.server.driver.session(database=backend.server.database) as session:
            statement = "EXPLAIN " + filled(changes.HAS_CHANGED, BY_TIME)
            plan = session.run(statement, since=0).consume().plan

        assert "NodeIndexSeekByRange" in str(plan)
        assert "LabelScan" not in str(plan)
