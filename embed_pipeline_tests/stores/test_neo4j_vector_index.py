"""The vector index: what it filters by itself, how it is replaced, and what is said about it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event

import pytest
from neo4j.exceptions import Neo4jError

from embed_pipeline.domain.check import CheckResult, Condition
from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.embedding import ModelRecord
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.errors import PageTooLarge, SchemaMissing, StoreBusy
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline.stores.config import InitOptions
from embed_pipeline.stores.neo4j.graph import search as vector_search
from embed_pipeline.stores.neo4j.graph.index import VectorIndex, VectorIndexes
from embed_pipeline.stores.neo4j.setup.vector_index import VectorIndexSetup
from embed_pipeline_tests.clocks import FakeClock
from embed_pipeline_tests.contracts.entity_store.scene import (
    MODEL,
    add,
    add_embedded,
    register,
    uid,
    uids,
    vector,
    write,
)
from embed_pipeline_tests.contracts.entity_store.search import embed_with, found
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.stores.neo4j_graph import Neo4jGraphBackend, database_of, empty
from embed_pipeline_tests.stores.neo4j_plans import ways
from embed_pipeline_tests.stores.neo4j_stores import statements_sent

REBUILD = InitOptions(rebuild_index=True)

NEARER = """
UNWIND range(1, 1000) AS n
CREATE (e:Entity:Embedded {uid: 'near' + n, name: 'near', entityType: $type,
                           embedding_model: $model, embedding_version: 'v'})
SET e.embedding = [1.0, n / 100000.0, 0.0, 0.0]
"""

OPTIONS = (
    "OPTIONS {indexConfig: {`vector.dimensions`: $dimensions,"
    " `vector.similarity_function`: 'cosine'}}"
)
OLD_INDEX = f"CREATE VECTOR INDEX embedding_index FOR (e:Entity) ON (e.embedding) {OPTIONS}"
"""Version 0.1's."""

LONG = "x" * 40_000


@pytest.fixture
def server(neo4j_graph: BedServer) -> BedServer:
    return neo4j_graph


@pytest.fixture
def backend(server: BedServer, clock: FakeClock) -> Iterator[Neo4jGraphBackend]:
    server.wipe()
    empty(server)
    backend = Neo4jGraphBackend(server, clock)
    yield backend
    backend.close()


@pytest.fixture
def store(backend: Neo4jGraphBackend) -> EntityStore:
    return backend.open_store()


@pytest.fixture
def filters_inside(server: BedServer) -> bool:
    return not server.driver.get_server_info().agent.startswith("Neo4j/5.")


@pytest.fixture
def by_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_search, "COMPARE_ALL", -1)


@pytest.fixture
def setup(server: BedServer) -> Iterator[VectorIndexSetup]:
    database = database_of(server)
    yield VectorIndexSetup(database, Collection())
    database.close()


def indexes(server: BedServer) -> list[tuple[str, str, list[str]]]:
    """Name, label and the properties that it filters by."""
    rows = server.run("SHOW VECTOR INDEXES YIELD name, labelsOrTypes, properties ORDER BY name")
    return [(row["name"], row["labelsOrTypes"][0], row["properties"][1:]) for row in rows]


def in_state(monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    """What the server reports of an index, which in truth is built within milliseconds."""
    find = VectorIndexes.find

    def find_in_state(self: VectorIndexes, record: ModelRecord) -> list[VectorIndex]:
        return [
            replace(index, state=state, percent=43.0, failure="Too much.\nat …")
            for index in find(self, record)
        ]

    monkeypatch.setattr(VectorIndexes, "find", find_in_state)


@pytest.mark.usefixtures("by_index")
class TestFilters:
    def test_a_thousand_nearer_soft_deleted_ones_do_not_hide_the_hit(
        self, store: EntityStore, server: BedServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(vector_search, "MOST_FETCHED", 100)
        embed_with(store, {1: vector(0, 1, 0, 0)})
        server.run(NEARER, model=MODEL, type="x")
        server.run("CALL db.awaitIndexes(60)")

        store.soft_delete([EntityUid(f"near{n}") for n in range(1, 1001)])

        assert found(store, vector(1, 0, 0, 0)) == [uid(1)]

    def test_nor_do_those_that_another_program_deleted(
        self,
        store: EntityStore,
        server: BedServer,
        filters_inside: bool,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        if filters_inside:
            monkeypatch.setattr(vector_search, "MOST_FETCHED", 100)
        embed_with(store, {1: vector(0, 1, 0, 0)})
        server.run(NEARER, model=MODEL, type="x")
        server.run("CALL db.awaitIndexes(60)")

        server.run("MATCH (e:Entity {name: 'near'}) SET e.validTo = datetime()")

        assert found(store, vector(1, 0, 0, 0)) == [uid(1)]

    def test_nor_do_a_thousand_nearer_ones_of_another_type(
        self,
        store: EntityStore,
        server: BedServer,
        filters_inside: bool,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        if filters_inside:
            monkeypatch.setattr(vector_search, "MOST_FETCHED", 100)
        embed_with(store, {1: vector(0, 1, 0, 0)}, entity_type="wanted")
        server.run(NEARER, model=MODEL, type="near")
        server.run("CALL db.awaitIndexes(60)")

        hits = store.search(vector(1, 0, 0, 0), model=MODEL, entity_type="wanted").hits

        assert [hit.entity.uid for hit in hits] == [uid(1)]

    def test_deprecated_procedure_is_asked_only_where_there_is_nothing_else(
        self,
        store: EntityStore,
        server: BedServer,
        filters_inside: bool,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        add_embedded(store, 1)
        server.run("CALL db.awaitIndexes(60)")
        sent = statements_sent(monkeypatch)

        found(store, vector())

        asked = [statement for statement, _ in sent if "queryNodes" in statement]
        assert bool(asked) is not filters_inside

    def test_no_statement_of_a_search_reads_the_whole_label(
        self, store: EntityStore, server: BedServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        add_embedded(store, 1)
        server.run(NEARER, model=MODEL, type="x")
        server.run("CALL db.awaitIndexes(60)")
        sent = statements_sent(monkeypatch)

        store.search(vector(1, 0, 0, 0), model=MODEL, limit=1, entity_type="x")

        asked = ways(server, {text: text for text, _ in sent if "SHOW" not in text})
        found_by = {way for operators in asked.values() for way in operators}
        scans = {by for kind, by in found_by if kind != "NodeUniqueIndexSeek"}
        assert scans == {"m:EmbeddingModel"}


@pytest.mark.usefixtures("by_index")
class TestReplacing:
    def test_index_of_0_1_is_replaced_while_searches_go_on(
        self, store: EntityStore, server: BedServer, setup: VectorIndexSetup
    ) -> None:
        record = register(store)
        add_embedded(store, *range(20))
        server.run("DROP INDEX embedding_index")
        server.run(OLD_INDEX, dimensions=4)
        server.run("CALL db.awaitIndexes(60)")
        replaced = Event()

        def search() -> int:
            searches = 0
            while not replaced.is_set() or searches < 3:
                assert len(found(store, vector(), limit=5)) == 5
                searches += 1
            return searches

        with ThreadPoolExecutor(2) as pool:
            searching = [pool.submit(search) for _ in range(2)]
            said = setup.prepare(record, InitOptions())
            replaced.set()
            assert [task.result(timeout=60) >= 3 for task in searching] == [True, True]

        assert said == ["The vector index embedding_index_2 has replaced embedding_index."]
        ((name, label, _),) = indexes(server)
        assert (name, label) == ("embedding_index_2", "Embedded")
        assert [model.index_name for model in store.models()] == ["embedding_index_2"]

    def test_index_of_another_program_stays(
        self, store: EntityStore, server: BedServer, setup: VectorIndexSetup
    ) -> None:
        theirs = OLD_INDEX.replace("embedding_index", "theirs")
        server.run(theirs, dimensions=8)
        record = register(store)

        assert setup.prepare(record, REBUILD) == []

        assert [name for name, _, _ in indexes(server)] == ["embedding_index", "theirs"]
        add_embedded(store, 1)
        assert found(store, vector()) == [uid(1)]

    def test_other_definition_is_reported_and_replaced_only_when_asked_to(
        self,
        store: EntityStore,
        server: BedServer,
        setup: VectorIndexSetup,
        filters_inside: bool,
    ) -> None:
        """As after an upgrade of the server, or with another mapping."""
        if not filters_inside:
            pytest.skip("an index of this server has no filters that could change")
        record = register(store)
        server.run("DROP INDEX embedding_index")
        plain = OLD_INDEX.replace("Entity", "Embedded")
        server.run(plain, dimensions=4)
        add_embedded(store, 1)

        (said,) = setup.prepare(record, InitOptions())

        assert "filters by nothing, not by validTo and entityType" in said
        assert "`embed-pipeline init --rebuild-index` builds a new one in about 1 min;" in said
        assert indexes(server) == [("embedding_index", "Embedded", [])]
        assert found(store, vector()) == [uid(1)]
        assert setup.prepare(record, REBUILD) == [
            "The vector index embedding_index_2 has replaced embedding_index."
        ]
        assert indexes(server) == [("embedding_index_2", "Embedded", ["validTo", "entityType"])]
        assert setup.prepare(record, REBUILD) == []

    def test_index_for_other_dimensions_cannot_stand_beside_the_new_one(
        self, store: EntityStore, server: BedServer, setup: VectorIndexSetup
    ) -> None:
        record = register(store)
        other = replace(record, model="mock/other@8", dimensions=8)

        (said,) = setup.prepare(other, InitOptions())
        assert "is for 4 dimensions, mock/other@8 has 8" in said
        assert setup.prepare(other, REBUILD) == []

        (row,) = server.run("SHOW VECTOR INDEXES YIELD options")
        assert row["options"]["indexConfig"]["vector.dimensions"] == 8

    def test_index_for_other_dimensions_is_refused_before_the_model_is_registered(
        self, store: EntityStore, server: BedServer
    ) -> None:
        server.run(OLD_INDEX.replace("Entity", "Embedded"), dimensions=8)

        with pytest.raises(SchemaMissing, match="8 dimensions"):
            register(store)

        assert store.models() == ()


class TestWhileItIsBuilt:
    def test_few_vectors_are_compared_meanwhile(
        self, store: EntityStore, by_index: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        add_embedded(store, 1)
        in_state(monkeypatch, "POPULATING")

        assert found(store, vector()) == [uid(1)]

    def test_many_are_refused_with_how_far_it_is(
        self, store: EntityStore, by_index: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        add_embedded(store, 1)
        in_state(monkeypatch, "POPULATING")
        monkeypatch.setattr(vector_search, "COMPARE_MEANWHILE", 0)

        with pytest.raises(StoreBusy, match=r"embedding_index is still being built \(43 %\)"):
            found(store, vector())

    def test_failed_index_is_named_with_its_reason(
        self, store: EntityStore, by_index: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        add_embedded(store, 1)
        in_state(monkeypatch, "FAILED")
        monkeypatch.setattr(vector_search, "COMPARE_MEANWHILE", 0)

        with pytest.raises(SchemaMissing, match=r"has failed \(Too much.\): run .*--rebuild-index"):
            found(store, vector())


class TestDoctor:
    def test_it_reports_the_index(
        self,
        store: EntityStore,
        server: BedServer,
        setup: VectorIndexSetup,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        record = register(store)
        setup.prepare(record, InitOptions())
        assert self._said(setup, record) == (
            Condition.OK,
            "embedding_index on Embedded.embedding, 4 dimensions",
            None,
        )

        with monkeypatch.context() as patch:
            in_state(patch, "POPULATING")
            condition, message, _ = self._said(setup, record)
            assert (condition, message[-4:]) == (Condition.NOTE, "43 %")
            in_state(patch, "FAILED")
            condition, message, remedy = self._said(setup, record)
            assert (condition, remedy) == (
                Condition.BROKEN,
                "embed-pipeline init --rebuild-index",
            )

        server.run("DROP INDEX embedding_index")
        assert self._said(setup, record) == (
            Condition.BROKEN,
            "there is none on Embedded.embedding",
            "embed-pipeline init",
        )

    def _said(
        self, setup: VectorIndexSetup, record: ModelRecord
    ) -> tuple[Condition, str, str | None]:
        check: CheckResult
        (check,) = setup.diagnose([record])
        return check.condition, check.message, check.remedy


class TestLongValues:
    """Too long for the index's filter: without its guard the server stops the whole database."""

    @pytest.fixture(autouse=True)
    def _only_with_filters(self, filters_inside: bool) -> None:
        if not filters_inside:
            pytest.skip("the index of this server has no filters")

    def test_long_type_of_another_program_is_refused(
        self, store: EntityStore, server: BedServer
    ) -> None:
        add_embedded(store, 1)

        with pytest.raises(Neo4jError, match="too large to index"):
            server.run("MATCH (e:Embedded) SET e.entityType = $long", long=LONG)

        assert len(store.search(vector(), model=MODEL).hits) == 1

    def test_vector_of_an_entity_with_a_long_type_is_refused_alone(
        self, store: EntityStore, server: BedServer
    ) -> None:
        register(store)
        entities = add(store, 1, 2, 3)
        server.run("MATCH (e:Entity {uid: $uid}) SET e.entityType = $long", uid=uid(2), long=LONG)
        changed = store.read_entities([entity.uid for entity in entities])

        with pytest.raises(PageTooLarge, match="8 kB"):
            store.write_vectors([write(entity) for entity in changed.values()], model=MODEL)
        store.write_vectors([write(changed[uid(1)]), write(changed[uid(3)])], model=MODEL)

        assert found(store, vector()) == uids([1, 3])
