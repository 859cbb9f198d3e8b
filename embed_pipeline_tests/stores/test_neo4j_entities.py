"""The entity-store contracts bound to Neo4j, its users at once, and graphs of other people."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from typing import Any

import pytest

from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.embedding import VectorDefect
from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.domain.recipe import TextValue
from embed_pipeline.domain.reserved_names import NEO4J, refuse_misfits
from embed_pipeline.errors import ConfigurationError, StoreOverloaded
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline.stores.graph import discovery
from embed_pipeline.stores.graph.entity_store import GraphEntityStore
from embed_pipeline.stores.neo4j.driver.database import Row
from embed_pipeline.stores.neo4j.graph import search as vector_search
from embed_pipeline.stores.neo4j.graph.backend import Neo4jGraph, Neo4jGraphTransaction
from embed_pipeline.stores.neo4j.graph.mapping import filled
from embed_pipeline_tests.clocks import FakeClock
from embed_pipeline_tests.contracts.binding import GRAPH_CONTRACTS, bind
from embed_pipeline_tests.contracts.entity_store.discover import DiscoverContract
from embed_pipeline_tests.contracts.entity_store.scene import (
    MODEL,
    add,
    add_embedded,
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
from embed_pipeline_tests.contracts.entity_store.search import SearchContract
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.stores.neo4j_graph import ENTITY, Neo4jGraphBackend, database_of, empty


@pytest.fixture
def backend(neo4j_graph: BedServer, clock: FakeClock) -> Iterator[Neo4jGraphBackend]:
    empty(neo4j_graph)
    backend = Neo4jGraphBackend(neo4j_graph, clock)
    yield backend
    backend.close()


@pytest.fixture
def store(backend: Neo4jGraphBackend) -> EntityStore:
    return backend.open_store()


@pytest.fixture
def second(backend: Neo4jGraphBackend) -> EntityStore:
    return backend.open_store()


bind(globals(), GRAPH_CONTRACTS)


class TestDiscoverByWindows(DiscoverContract):
    """The same promises in a graph that is longer than a window."""

    @pytest.fixture(autouse=True)
    def _long(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(discovery, "WINDOW", 3)


class TestSearchByIndex(SearchContract):
    """The same promises when there are too many vectors to compare them all."""

    @pytest.fixture(autouse=True)
    def _many(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(vector_search, "COMPARE_ALL", -1)


def _create(server: BedServer, numbers: range) -> list[str]:
    """What one of several creators did; it connects itself, as a process would."""
    store = GraphEntityStore(Neo4jGraph(database_of(server), mapping=Collection()))
    register(store)
    created = store.create_entities([new(n) for n in numbers], model=MODEL)
    store.close()
    return [one.entity.uid for one in created if not one.existing]


class TestConcurrency:
    def test_concurrent_creators_create_each_entity_once(self, backend: Neo4jGraphBackend) -> None:
        overlapping = [range(n, n + 60) for n in range(0, 240, 20)]

        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(_create, [backend.server] * len(overlapping), overlapping))

        created = [key for result in results for key in result]
        assert sorted(created) == uids(range(280))
        assert coverage_of(backend.open_store(), model=MODEL).missing == 280

    def test_twenty_callers_create_fifty_entities_each_without_lock_timeouts(
        self, store: EntityStore
    ) -> None:
        register(store)
        starting_line = Barrier(20)

        def create(caller: int) -> None:
            # Every second entity is everybody's, and each caller names them in another order.
            mine = [new(1000 * (caller + 1) + n) for n in range(25)]
            shared = [new((n + caller) % 25) for n in range(25)]
            starting_line.wait()
            store.create_entities([*mine, *shared], model=MODEL)

        with ThreadPoolExecutor(20) as pool:
            list(pool.map(create, range(20)))

        assert coverage_of(store, model=MODEL).entities == 20 * 25 + 25

    def test_creating_does_not_wait_for_who_changes_what_is_there(
        self, backend: Neo4jGraphBackend, store: EntityStore
    ) -> None:
        """A lock would be told of as a timeout."""
        (there,) = add(store, 1)
        server = backend.server
        with (
            server.driver.session(database=server.database) as session,
            session.begin_transaction() as changing,
        ):
            changing.run(ENTITY + "SET e.updatedAt = 1", uid=there.uid).consume()

            (found,) = store.create_entities([NewEntity(uid=there.uid, name="x")], model=MODEL)

        assert (found.existing, found.entity) == (True, there)

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
        self, store: EntityStore, second: EntityStore, backend: Neo4jGraphBackend
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

    @pytest.mark.parametrize(
        "change",
        ["SET e.observations = ['changed']", "SET e.validTo = datetime()", "DETACH DELETE e"],
    )
    def test_vector_waits_for_an_open_change_and_sees_it(
        self, store: EntityStore, backend: Neo4jGraphBackend, change: str
    ) -> None:
        register(store)
        (entity,) = add(store, 1)

        with (
            ThreadPoolExecutor(1) as pool,
            backend.server.driver.session(database=backend.server.database) as session,
        ):
            theirs = session.begin_transaction()
            theirs.run(ENTITY + change, uid=uid(1)).consume()
            writing = pool.submit(store.write_vectors, [write(entity)], model=MODEL)
            time.sleep(0.5)
            assert not writing.done()
            theirs.commit()
            report = writing.result(timeout=20)

        assert report.written == ()
        assert report.superseded + report.gone == (uid(1),)
        assert store.embedded_versions([uid(1)], model=MODEL) == {}


PEOPLE = Collection(
    label="Person",
    key="id",
    name_property="title",
    type_property="kind",
    text=("title", "notes"),
    valid_to="retiredAt",
)

PERSON = "MATCH (p:Person {id: $id}) RETURN properties(p) AS p, labels(p) AS labels"


@pytest.fixture(scope="class")
def peoples_server(neo4j_graph: BedServer) -> Iterator[BedServer]:
    neo4j_graph.wipe_schema()
    yield neo4j_graph
    neo4j_graph.wipe_schema()


class TestOtherPeoplesGraphs:
    @pytest.fixture
    def backend(self, peoples_server: BedServer, clock: FakeClock) -> Iterator[Neo4jGraphBackend]:
        empty(peoples_server, PEOPLE)
        backend = Neo4jGraphBackend(peoples_server, clock)
        yield backend
        backend.close()

    @pytest.fixture
    def people(self, backend: Neo4jGraphBackend) -> EntityStore:
        """A graph that knows nothing of us: no marker, no hash, names of its own."""
        backend.server.run(
            "UNWIND range(0, 29) AS n CREATE (p:Person {id: 'p' + right('0' + toString(n), 2),"
            " title: 'Person ' + n, notes: ['note ' + n], age: n, tags: ['a', 'b'],"
            " born: date('1990-01-01'), updatedAt: datetime('2020-01-01T00:00:00Z')})"
            " CREATE (p)-[:KNOWS {since: n}]->(:Place {id: 'p' + n})"
        )
        store = backend.open_store(mapping=PEOPLE)
        store.register_first_model(MODEL, dimensions=4)
        return store

    def test_discovery_returns_exactly_the_limit(self, people: EntityStore) -> None:
        first = people.entities_without_embeddings(20, model=MODEL)
        rest = people.entities_without_embeddings(20, model=MODEL, after=first.bookmark)

        assert [e.uid for e in first.entities] == [f"p{n:02}" for n in range(20)]
        assert [e.uid for e in rest.entities] == [f"p{n:02}" for n in range(20, 30)]
        assert rest.bookmark is None
        assert first.entities[3].text == "Person 3\nnote 3"

    def test_only_what_is_ours_is_written(
        self, people: EntityStore, backend: Neo4jGraphBackend
    ) -> None:
        (before,) = backend.server.run(PERSON, id="p07")
        (entity,) = people.read_entities([uid("p07")]).values()

        people.write_vectors([write(entity)], model=MODEL)

        (after,) = backend.server.run(PERSON, id="p07")
        assert sorted(after["labels"]) == ["Embedded", "Person"]
        assert after["p"] == before["p"] | {
            "embedding": [1, 2, 3, 4],
            "embedding_model": MODEL,
            "embedding_version": entity.version,
            "embedded_at": int(backend.clock.now().timestamp() * 1000),
        }

    def test_upsert_writes_the_text_that_was_said_and_nothing_else(
        self, people: EntityStore, backend: Neo4jGraphBackend
    ) -> None:
        (before,) = backend.server.run(PERSON, id="p07")

        people.upsert_entities(
            [NewEntity(uid=uid("p07"), name="Person 7", properties={"notes": "one"})], model=MODEL
        )

        (after,) = backend.server.run(PERSON, id="p07")
        assert after["p"] == before["p"] | {"notes": "one"}
        assert sorted(after["labels"]) == ["NeedsEmbedding", "Person"]

    def test_truncated_text_is_noted_until_a_whole_one_is_embedded(
        self, people: EntityStore, backend: Neo4jGraphBackend
    ) -> None:
        (entity,) = people.read_entities([uid("p07")]).values()

        people.write_vectors([replace(write(entity), truncated=True)], model=MODEL)
        (cut,) = backend.server.run(PERSON, id="p07")
        people.write_vectors([write(entity)], model=MODEL)
        (whole,) = backend.server.run(PERSON, id="p07")

        assert cut["p"]["embedding_truncated"] is True
        assert "embedding_truncated" not in whole["p"]

    def test_vector_with_a_number_that_no_float32_holds_is_not_offered_for_reuse(
        self, people: EntityStore, backend: Neo4jGraphBackend
    ) -> None:
        (entity,) = people.read_entities([uid("p07")]).values()
        people.write_vectors([write(entity)], model=MODEL)
        backend.server.run("MATCH (p:Person {id: 'p07'}) SET p.embedding = [1e300, 0.0, 0.0, 1.0]")

        assert people.vectors_of_versions([entity.version], model=MODEL) == {}

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            ("42", "42"),
            ("1.5", "1.5"),
            ("true", "true"),
            ("[1, 2]", ("1", "2")),
            ("[true, false]", ("true", "false")),
            ("date('2020-01-02')", "2020-01-02"),
            ("[]", ()),
            ("point({x: 1, y: 2})", None),
        ],
    )
    def test_text_of_another_type_is_embedded_as_a_string_and_left_as_it_is(
        self, people: EntityStore, backend: Neo4jGraphBackend, value: str, text: TextValue
    ) -> None:
        backend.server.run(f"MATCH (p:Person {{id: 'p07'}}) SET p.notes = {value}")
        (before,) = backend.server.run(PERSON, id="p07")
        (entity,) = people.read_entities([uid("p07")]).values()

        report = people.write_vectors([write(entity)], model=MODEL)
        people.upsert_entities([NewEntity(uid=uid("p07"), name="Person 7")], model=MODEL)

        (after,) = backend.server.run(PERSON, id="p07")
        assert entity.texts == ("Person 7", text)
        assert report.written == (uid("p07"),)
        assert after["p"]["notes"] == before["p"]["notes"]

    @pytest.mark.parametrize(
        "moment",
        [
            "datetime('2024-05-01T00:00:00Z')",
            "localdatetime('2024-05-01T00:00:00')",
            "date('2024-05-01')",
        ],
    )
    def test_temporal_end_of_validity_makes_an_entity_invalid(
        self, people: EntityStore, backend: Neo4jGraphBackend, moment: str
    ) -> None:
        (entity,) = people.read_entities([uid("p07")]).values()
        backend.server.run(f"MATCH (p:Person {{id: 'p07'}}) SET p.retiredAt = {moment}")

        report = people.write_vectors([write(entity)], model=MODEL)

        assert report.gone == (uid("p07"),)
        assert not stored(people, uid("p07")).is_valid
        assert coverage_of(people, model=MODEL).entities == 29
        assert people.soft_delete([uid("p07")]) == ()

    def test_nodes_without_a_key_are_left_alone_and_not_counted(
        self, people: EntityStore, backend: Neo4jGraphBackend
    ) -> None:
        backend.server.run("CREATE (:Person {title: 'nobody'}), (:Person {id: 7, title: 'seven'})")

        assert coverage_of(people, model=MODEL).entities == 30
        assert len(people.entities_without_embeddings(100, model=MODEL).entities) == 30
        assert people.find_by_name("nobody") == ()

    @pytest.mark.parametrize("theirs", ["[0.5, 0.5, 0.5, 0.5]", "'none'", "17"])
    def test_vector_of_another_program_is_of_a_wrong_model_and_replaced(
        self, people: EntityStore, backend: Neo4jGraphBackend, theirs: str
    ) -> None:
        backend.server.run(f"MATCH (p:Person {{id: 'p07'}}) SET p.embedding = {theirs}")
        (entity,) = people.read_entities([uid("p07")]).values()

        found = people.classify([uid("p07")], model=MODEL)
        missing = people.entities_without_embeddings(100, model=MODEL).entities
        people.write_vectors([write(entity)], model=MODEL)

        assert found == {"p07": VectorDefect.WRONG_MODEL}
        assert entity in missing
        assert coverage_of(people, model=MODEL).embedded == 1


class TestIndexes:
    def test_zero_vector_of_another_program_breaks_no_search(
        self, store: EntityStore, backend: Neo4jGraphBackend
    ) -> None:
        add_embedded(store, 1, 2)
        backend.replace_vector(uid(1), vector(0, 0, 0, 0))

        hits = store.search(vector(), model=MODEL).hits

        assert [(hit.entity.uid, hit.score) for hit in hits] == [(uid(2), 1.0), (uid(1), 0.0)]

    def test_several_that_begin_at_once_make_one_index(self, backend: Neo4jGraphBackend) -> None:
        backend.server.wipe()
        empty(backend.server)
        stores = [backend.open_store() for _ in range(4)]
        together = Barrier(len(stores))

        def begin(store: EntityStore) -> object:
            together.wait()
            return store.register_first_model(MODEL, dimensions=4)

        with ThreadPoolExecutor(len(stores)) as threads:
            records = list(threads.map(begin, stores))

        assert len(set(records)) == 1
        found = backend.server.run("SHOW VECTOR INDEXES YIELD name RETURN name")
        assert found == [{"name": "embedding_index"}]

    def test_index_that_a_registration_did_not_get_to_is_made_by_the_next(
        self, store: EntityStore, second: EntityStore, backend: Neo4jGraphBackend
    ) -> None:
        register(store)
        backend.server.run("DROP INDEX embedding_index")

        register(second)

        (row,) = backend.server.run("SHOW VECTOR INDEXES YIELD name RETURN name")
        assert row["name"] == "embedding_index"


@pytest.mark.parametrize(
    "mapping",
    [
        Collection(label="EmbedJob"),
        Collection(label="NeedsEmbedding"),
        Collection(text=("name", "embedding_notes")),
        Collection(valid_to="name"),
        Collection(text=("name", "name")),
    ],
)
def test_mapping_in_our_own_way_is_refused(mapping: Collection) -> None:
    with pytest.raises(ConfigurationError):
        refuse_misfits(mapping, NEO4J)


@pytest.mark.parametrize("name", ["", "a`b", "a b", "a\\u0060b", "1a", "a{b}"])
def test_only_plain_identifiers_reach_a_query(name: str) -> None:
    with pytest.raises(ValueError, match="no name"):
        filled("MATCH (e:{entity})", Collection(label=name))


@pytest.mark.parametrize("bearable", [1, 2, 4])
def test_page_too_large_for_the_servers_memory_lands_in_parts(
    store: EntityStore, monkeypatch: pytest.MonkeyPatch, bearable: int
) -> None:
    entities = add(store, *range(7))
    run = Neo4jGraphTransaction.all

    def run_what_fits(self: Neo4jGraphTransaction, statement: str, **parameters: Any) -> list[Row]:
        if len(parameters.get("rows", ())) > bearable:
            raise StoreOverloaded("The database has no memory left for this transaction.")
        return run(self, statement, **parameters)

    monkeypatch.setattr(Neo4jGraphTransaction, "all", run_what_fits)
    report = embed(store, *entities)

    assert report.written == tuple(entity.uid for entity in entities)
    assert coverage_of(store, model=MODEL).embedded == len(entities)


def test_single_vector_that_the_server_has_no_memory_for_is_an_error(
    store: EntityStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    entities = add(store, 1, 2)
    register(store)

    def refuse(self: Neo4jGraphTransaction, statement: str, **parameters: Any) -> list[Row]:
        raise StoreOverloaded("The database has no memory left for this transaction.")

    monkeypatch.setattr(Neo4jGraphTransaction, "all", refuse)

    with pytest.raises(StoreOverloaded):
        store.write_vectors([write(entity) for entity in entities], model=MODEL)
