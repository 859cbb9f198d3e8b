"""Set-up of the two databases: complete, repeatable, and nobody's data touched."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from embed_pipeline.domain.collection import Collection
from embed_pipeline.errors import ConfigurationError, SchemaMissing
from embed_pipeline.stores.neo4j.driver.database import Neo4jDatabase
from embed_pipeline.stores.neo4j.setup import schema
from embed_pipeline_tests.neo4j_bed.client import BedServer

MAPPING = Collection()
PEOPLE = Collection(
    label="Person",
    key="id",
    name_property="fullName",
    type_property="kind",
    text=("fullName", "bio"),
)

FOREIGN_JOB: dict[str, object] = {
    "entity_uid": "e",
    "model": "m",
    "status": "pending",
    "priority": 7,
    "created_at": 1_700_000_000_000,
    "attempts": 1,
    "max_attempts": 3,
}

NAMES = """
SHOW INDEXES YIELD name, type WHERE type <> 'LOOKUP' RETURN name ORDER BY name
"""


def open_database(server: BedServer) -> Neo4jDatabase:
    return Neo4jDatabase(
        server.uri, user=server.user, password=server.password, database=server.database
    )


@pytest.fixture
def queue(neo4j_queue: BedServer) -> Iterator[Neo4jDatabase]:
    neo4j_queue.wipe_schema()
    database = open_database(neo4j_queue)
    yield database
    database.close()


@pytest.fixture
def graph(neo4j_graph: BedServer) -> Iterator[Neo4jDatabase]:
    neo4j_graph.wipe_schema()
    database = open_database(neo4j_graph)
    yield database
    database.close()


def names(server: BedServer) -> list[str]:
    return [row["name"] for row in server.run(NAMES)]


def properties(server: BedServer, label: str) -> list[dict[str, Any]]:
    rows = server.run(f"MATCH (n:{label}) RETURN properties(n) AS p ORDER BY n.id, n.uid")
    return [row["p"] for row in rows]


class TestQueue:
    def test_a_missing_schema_names_the_command_that_makes_it(self, queue: Neo4jDatabase) -> None:
        with pytest.raises(SchemaMissing, match="embed-pipeline init") as caught:
            schema.check_queue(queue)

        assert queue.database in str(caught.value)

    def test_a_second_set_up_changes_nothing(
        self, neo4j_queue: BedServer, queue: Neo4jDatabase
    ) -> None:
        schema.prepare_queue(queue)
        before = names(neo4j_queue), neo4j_queue.run("MATCH (n) RETURN properties(n) AS p")

        schema.prepare_queue(queue)
        schema.check_queue(queue)

        after = names(neo4j_queue), neo4j_queue.run("MATCH (n) RETURN properties(n) AS p")
        assert after == before

    def test_several_set_ups_at_once_are_one(self, queue: Neo4jDatabase) -> None:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(schema.prepare_queue, [queue] * 4))

        schema.check_queue(queue)

    def test_a_lost_index_is_noticed_and_made_again(
        self, neo4j_queue: BedServer, queue: Neo4jDatabase
    ) -> None:
        schema.prepare_queue(queue)
        neo4j_queue.run("DROP INDEX embedjob_ready")

        with pytest.raises(SchemaMissing, match="available_at"):
            schema.check_queue(queue)
        schema.prepare_queue(queue)

        schema.check_queue(queue)

    def test_a_rebuilt_database_is_noticed(
        self, neo4j_queue: BedServer, queue: Neo4jDatabase
    ) -> None:
        schema.prepare_queue(queue)
        neo4j_queue.wipe()

        with pytest.raises(SchemaMissing, match="embed-pipeline init"):
            schema.check_queue(queue)

    def test_a_newer_schema_is_left_alone(
        self, neo4j_queue: BedServer, queue: Neo4jDatabase
    ) -> None:
        schema.prepare_queue(queue)
        neo4j_queue.run("MATCH (s:QueueSchema) SET s.version = 99")

        for action in (schema.check_queue, schema.prepare_queue):
            with pytest.raises(SchemaMissing, match="99"):
                action(queue)

    def test_an_index_of_an_earlier_version_is_replaced(
        self, neo4j_queue: BedServer, queue: Neo4jDatabase
    ) -> None:
        schema.prepare_queue(queue)
        before = names(neo4j_queue)
        neo4j_queue.run("MATCH (s:QueueSchema) SET s.version = 1")
        neo4j_queue.run("DROP INDEX embedjob_lease")
        neo4j_queue.run("CREATE INDEX embedjob_token FOR (j:EmbedJob) ON (j.lease_token)")
        neo4j_queue.run("CREATE CONSTRAINT budget_provider FOR (b:Budget) REQUIRE b.x IS UNIQUE")
        neo4j_queue.run("CREATE (:Budget {provider: 'openai'})")

        with pytest.raises(SchemaMissing, match="embed-pipeline init"):
            schema.check_queue(queue)
        schema.prepare_queue(queue)

        schema.check_queue(queue)
        assert names(neo4j_queue) == before
        assert neo4j_queue.run("MATCH (b:Budget) RETURN b") == []

    def test_jobs_of_the_version_before_are_tracked_and_not_called_adopted(
        self, neo4j_queue: BedServer, queue: Neo4jDatabase
    ) -> None:
        schema.prepare_queue(queue)
        ours = {"rank": -7, "tier": 0, "available_at": 5}
        jobs = [
            {**FOREIGN_JOB, **ours, "id": "1", "version": "1"},
            {**FOREIGN_JOB, **ours, "id": "2", "version": "2", "rank": None},
            {**FOREIGN_JOB, **ours, "id": "3", "version": "3", "rank": None}
            | {"status": "failed", "processed_at": 7},
        ]
        neo4j_queue.run("UNWIND $jobs AS job CREATE (j:EmbedJob) SET j = job", jobs=jobs)
        neo4j_queue.run("MATCH (s:QueueSchema) SET s.version = 4")
        neo4j_queue.run("DROP INDEX embedjob_ended_at")

        with pytest.raises(SchemaMissing, match="embed-pipeline init"):
            schema.check_queue(queue)
        adopted = schema.prepare_queue(queue)

        assert adopted == 1
        first, second, third = properties(neo4j_queue, "TrackedJob")
        assert first == jobs[0]
        assert second["rank"] == -7
        assert third["ended_at"] == 7

    def test_jobs_of_another_program_are_adopted(
        self, neo4j_queue: BedServer, queue: Neo4jDatabase
    ) -> None:
        jobs: list[dict[str, object]] = [
            {**FOREIGN_JOB, "id": "1", "version": "1"},
            {**FOREIGN_JOB, "id": "2", "version": "2", "priority": 100, "status": "failed"},
            {"id": "3", "entity_uid": "e", "model": "m", "version": "3", "status": "pending"},
            {**FOREIGN_JOB, "id": "4", "version": "4", "priority": 100},
            {**FOREIGN_JOB, "id": "5", "version": "5", "status": "processing"},
            {**FOREIGN_JOB, "id": "6", "version": "6", "priority": -1},
        ]
        neo4j_queue.run("UNWIND $jobs AS job CREATE (j:EmbedJob) SET j = job", jobs=jobs)

        adopted = schema.prepare_queue(queue), schema.prepare_queue(queue)

        assert adopted == (6, 0)
        first, second, third, fourth, fifth, sixth = properties(neo4j_queue, "EmbedJob")
        due = {"tier": 0, "available_at": FOREIGN_JOB["created_at"]}
        assert first == {**jobs[0], **due, "rank": -7}
        assert "rank" not in second
        assert (third["rank"], third["attempts"], third["max_attempts"]) == (-5, 0, 3)
        assert third["available_at"] == third["created_at"]
        assert (fourth["rank"], fourth["priority"]) == (-9, 9)
        assert fifth["lock_until"] < time.time() * 1_000, "it is stale"
        assert (sixth["rank"], sixth["priority"]) == (0, 0)

    def test_jobs_of_ours_are_not_touched(
        self, neo4j_queue: BedServer, queue: Neo4jDatabase
    ) -> None:
        schema.prepare_queue(queue)
        job = {**FOREIGN_JOB, "id": "1", "version": "1", "rank": -7, "tier": 2, "available_at": 5}
        job |= {"strikes": 4, "recoveries": 1}
        neo4j_queue.run("CREATE (j:EmbedJob:TrackedJob) SET j = $job", job=job)

        assert schema.prepare_queue(queue) == 0

        assert properties(neo4j_queue, "EmbedJob") == [job]


class TestGraph:
    def test_a_missing_schema_names_the_command_that_makes_it(self, graph: Neo4jDatabase) -> None:
        with pytest.raises(SchemaMissing, match="embed-pipeline init"):
            schema.check_graph(graph, MAPPING)

    def test_set_up_adds_only_rules_and_own_labels_to_an_existing_graph(
        self, neo4j_graph: BedServer, graph: Neo4jDatabase
    ) -> None:
        neo4j_graph.run(
            "CREATE (:Person {id: 'a', fullName: 'Ada', updatedAt: 1})"
            "-[:KNOWS {since: 1840}]->(:Person:Engineer {id: 'b', born: date('1791-12-26')})"
        )
        picture = (
            "MATCH (n:Person) OPTIONAL MATCH (n)-[r]->()"
            " RETURN properties(n) AS n, [l IN labels(n) WHERE l <> 'NothingToEmbed'] AS l, r"
        )
        before = neo4j_graph.run(picture)

        schema.prepare_graph(graph, PEOPLE)
        schema.prepare_graph(graph, PEOPLE)
        schema.check_graph(graph, PEOPLE)

        assert neo4j_graph.run(picture) == before
        empty = neo4j_graph.run("MATCH (n:NothingToEmbed) RETURN n.id AS id")
        assert empty == [{"id": "b"}], "known before the first audit"

    def test_another_mapping_is_set_up_beside_the_first(self, graph: Neo4jDatabase) -> None:
        schema.prepare_graph(graph, MAPPING)

        with pytest.raises(SchemaMissing):
            schema.check_graph(graph, PEOPLE)
        schema.prepare_graph(graph, PEOPLE)

        schema.check_graph(graph, PEOPLE)
        schema.check_graph(graph, MAPPING)

    def test_a_constraint_that_was_there_under_another_name_is_used(
        self, neo4j_graph: BedServer, graph: Neo4jDatabase
    ) -> None:
        neo4j_graph.run("CREATE CONSTRAINT mine FOR (e:Entity) REQUIRE e.uid IS UNIQUE")

        schema.prepare_graph(graph, MAPPING)

        assert "mine" in names(neo4j_graph)
        assert "embedding_Entity_uid" not in names(neo4j_graph)

    @pytest.mark.parametrize(
        ("made_before", "says"),
        [
            ("CREATE (:Entity {uid: 'a'}), (:Entity {uid: 'a'})", "uid"),
            ("CREATE INDEX mine FOR (e:Entity) ON (e.uid)", "until the index has been dropped"),
            ("CREATE INDEX embedding_Entity_name FOR (e:Other) ON (e.x)", "embedding_Entity_name"),
        ],
        ids=["a key used twice", "a plain index on the key", "a name that is taken"],
    )
    def test_what_stands_in_the_way_is_named(
        self, neo4j_graph: BedServer, graph: Neo4jDatabase, made_before: str, says: str
    ) -> None:
        neo4j_graph.run(made_before)

        with pytest.raises(SchemaMissing, match=says):
            schema.prepare_graph(graph, MAPPING)

    def test_a_name_too_long_for_an_index_is_reported_and_leaves_no_failed_index(
        self, neo4j_graph: BedServer, graph: Neo4jDatabase
    ) -> None:
        neo4j_graph.run("CREATE (:Entity {uid: 'a', name: $name})", name="n" * 10_000)

        with pytest.raises(SchemaMissing, match=r"Entity\(name\).* 8 kB"):
            schema.prepare_graph(graph, MAPPING)

        assert neo4j_graph.run("SHOW INDEXES YIELD state WHERE state = 'FAILED'") == []
        neo4j_graph.run("MATCH (e:Entity) SET e.name = 'short'")
        schema.prepare_graph(graph, MAPPING)
        schema.check_graph(graph, MAPPING)

    def test_a_mapping_that_uses_our_labels_is_refused(self, graph: Neo4jDatabase) -> None:
        with pytest.raises(ConfigurationError):
            schema.prepare_graph(graph, Collection(label="EmbedJob"))


class TestApart:
    def test_the_queues_database_is_refused_for_the_graph(self, queue: Neo4jDatabase) -> None:
        schema.prepare_queue(queue)

        for action in (schema.prepare_graph, schema.check_graph):
            with pytest.raises(ConfigurationError, match="database of its own"):
                action(queue, MAPPING)

    def test_the_graphs_database_is_refused_for_the_queue(self, graph: Neo4jDatabase) -> None:
        schema.prepare_graph(graph, MAPPING)

        for action in (schema.prepare_queue, schema.check_queue):
            with pytest.raises(ConfigurationError, match="database of its own"):
                action(graph)
