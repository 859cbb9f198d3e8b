"""Texts from neighbours: read in one statement, compared under the entity's lock."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from embed_pipeline.domain import diagnosis
from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.embedding import VectorDefect
from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.domain.recipe import MOST_RELATIONSHIPS, Neighbours, parse_part
from embed_pipeline.domain.reserved_names import SQLITE, refuse_misfits
from embed_pipeline.errors import ConfigurationError
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline_tests.clocks import FakeClock
from embed_pipeline_tests.contracts.entity_store.scene import MODEL, embed, stored, uid
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.stores.neo4j_graph import ENTITY, Neo4jGraphBackend, empty

BOOKS = {"path": "-[:WROTE]->(:Book)", "properties": ["title"]}


def collection(**given: object) -> Collection:
    part = parse_part(BOOKS | given)
    assert isinstance(part, Neighbours)
    return Collection(text=("name", part, "observations"))


@pytest.fixture
def backend(neo4j_graph: BedServer, clock: FakeClock) -> Iterator[Neo4jGraphBackend]:
    empty(neo4j_graph)
    backend = Neo4jGraphBackend(neo4j_graph, clock)
    yield backend
    backend.close()


@pytest.fixture
def store(backend: Neo4jGraphBackend) -> EntityStore:
    """Ada, who wrote two books."""
    return author(backend, collection(heading="books"))


def author(backend: Neo4jGraphBackend, mapping: Collection, *titles: str) -> EntityStore:
    store = backend.open_store(mapping=mapping)
    store.create_entities([ADA], model=MODEL)
    backend.server.run(
        ENTITY + "UNWIND $titles AS title CREATE (e)-[:WROTE]->(:Book {title: title})",
        uid=ADA.uid,
        titles=titles or ("Notes", "Letters"),
    )
    return store


ADA = NewEntity(uid=uid("ada"), name="Ada", properties={"observations": ("likes tea",)})
TEXT = "Ada\nbooks:\nLetters\nNotes\nlikes tea"


def text_of(store: EntityStore) -> str:
    return stored(store, uid("ada")).text


def rename(backend: Neo4jGraphBackend, old: str, new: str) -> None:
    backend.server.run("MATCH (b:Book {title: $old}) SET b.title = $new", old=old, new=new)


class TestText:
    def test_neighbours_stand_in_the_text_wherever_it_is_read(self, store: EntityStore) -> None:
        missing = store.entities_without_embeddings(10, model=MODEL).entities
        read = (*missing, *store.find_by_name("Ada"), *store.next_entities(limit=5))

        assert [entity.text for entity in read] == [TEXT] * 3
        assert text_of(store) == TEXT

    def test_each_neighbour_once_in_order_and_at_most_so_many(
        self, backend: Neo4jGraphBackend
    ) -> None:
        mapping = collection(properties=["title", "year"], order_by="year", limit=3)
        store = author(backend, mapping, "d", "c", "b", "a")
        backend.server.run(
            "MATCH (e:Entity)-[:WROTE]->(b:Book) SET b.year = CASE b.title WHEN 'd' THEN 9"
            " WHEN 'c' THEN 10 ELSE 11 END CREATE (e)-[:WROTE]->(b)"
            " CREATE (e)-[:WROTE]->(:Book {pages: 1}) CREATE (e)-[:WROTE]->(:Letter {title: '0'})"
        )

        assert text_of(store) == "Ada\nd, 9\nc, 10\na, 11\nlikes tea"

    @pytest.mark.parametrize(
        ("path", "found"),
        [
            ("-[:KNOWS]->(:Entity)", "Bob"),
            ("<-[:KNOWS]-(:Entity)", "Cleo"),
            ("-[:KNOWS]-(:Entity)", "Bob\nCleo"),
        ],
    )
    def test_every_direction(self, backend: Neo4jGraphBackend, path: str, found: str) -> None:
        store = author(backend, collection(path=path, properties=["name"]))
        backend.server.run(
            ENTITY + "CREATE (e)-[:KNOWS]->(:Entity {uid: 'b', name: 'Bob'}),"
            " (e)<-[:KNOWS]-(:Entity {uid: 'c', name: 'Cleo'})",
            uid=ADA.uid,
        )

        assert text_of(store) == f"Ada\n{found}\nlikes tea"

    def test_values_of_other_types_are_written_as_text(self, backend: Neo4jGraphBackend) -> None:
        store = author(backend, collection(properties=["title", "tags", "price", "at"]))
        backend.server.run(
            "MATCH (b:Book {title: 'Notes'}) SET b.tags = ['x', 'y'], b.price = 1.5,"
            " b.at = date('1843-09-01')"
        )

        assert "Notes, x, y, 1.5, 1843-09-01" in text_of(store)

    def test_html_is_stripped_where_it_is_said(self, backend: Neo4jGraphBackend) -> None:
        mapping = replace(collection(), html=("observations",))
        store = author(backend, mapping)
        backend.set_text(uid("ada"), "observations", "<p>likes &quot;tea&quot;</p>")

        assert text_of(store).endswith('\nlikes "tea"')


class TestTooMany:
    def test_none_of_too_many_neighbours_is_in_the_text_and_why_says_so(
        self, backend: Neo4jGraphBackend
    ) -> None:
        store = author(backend, collection())
        create = ENTITY + "UNWIND range(1, $most - 2) AS n CREATE (e)-[:WROTE]->(:Letter)"
        backend.server.run(create, uid=ADA.uid, most=MOST_RELATIONSHIPS)
        at_the_limit = text_of(store)
        backend.server.run(ENTITY + "CREATE (e)-[:WROTE]->(:Letter)", uid=ADA.uid)

        entity = stored(store, uid("ada"))
        finding = diagnosis.with_text_left_out(diagnosis.good(entity), entity)

        assert "Notes" in at_the_limit
        assert entity.text == "Ada\nlikes tea"
        assert "Its text is without -[:WROTE]->(:Book): it has more than 10,000" in finding.message


class TestWriting:
    def test_vector_of_an_earlier_neighbour_is_not_written(
        self, store: EntityStore, backend: Neo4jGraphBackend
    ) -> None:
        read = stored(store, uid("ada"))
        rename(backend, "Notes", "Sketches")

        report = embed(store, read)

        assert (report.written, report.superseded) == ((), (uid("ada"),))
        assert not backend.has_vector(uid("ada"))

    def test_neighbour_that_changed_later_makes_the_vector_stale(
        self, store: EntityStore, backend: Neo4jGraphBackend
    ) -> None:
        embed(store, stored(store, uid("ada")))
        good = store.classify([uid("ada")], model=MODEL)
        rename(backend, "Notes", "Sketches")

        page = store.audit_page(model=MODEL, after=None, size=10)

        assert good == {uid("ada"): None}
        assert store.classify([uid("ada")], model=MODEL) == {uid("ada"): VectorDefect.STALE}
        assert (page.stale, page.marked) == (1, 1)
        (changed,) = store.changed_entities(model=MODEL, limit=5)
        assert "Sketches" in changed.text

    def test_audit_takes_an_unchanged_text_for_right(self, store: EntityStore) -> None:
        embed(store, stored(store, uid("ada")))

        page = store.audit_page(model=MODEL, after=None, size=10)

        assert (page.embedded, page.repaired, page.marked) == (1, 0, 0)

    def test_writing_locks_the_entity_and_no_neighbour(
        self, store: EntityStore, backend: Neo4jGraphBackend
    ) -> None:
        read = stored(store, uid("ada"))
        with (
            backend.server.driver.session(database=backend.server.database) as session,
            session.begin_transaction() as theirs,
            ThreadPoolExecutor(1) as pool,
        ):
            theirs.run("MATCH (b:Book {title: 'Notes'}) SET b.title = 'Sketches'").consume()
            report = pool.submit(embed, store, read).result(timeout=30)
            theirs.commit()

        assert report.written == (uid("ada"),)
        assert store.classify([uid("ada")], model=MODEL) == {uid("ada"): VectorDefect.STALE}

    def test_upsert_keeps_the_neighbours_and_writes_none_of_them(
        self, store: EntityStore, backend: Neo4jGraphBackend
    ) -> None:
        changed = replace(ADA, properties={"observations": ("likes coffee",)})

        (made,) = store.upsert_entities([changed], model=MODEL)

        (row,) = backend.server.run(ENTITY + "RETURN keys(e) AS keys", uid=ADA.uid)
        assert made.entity.text == "Ada\nbooks:\nLetters\nNotes\nlikes coffee"
        assert made.entity == stored(store, uid("ada"))
        assert set(row["keys"]) == {"uid", "name", "observations"}


def test_a_store_without_relationships_refuses_a_path() -> None:
    with pytest.raises(ConfigurationError, match=r"only Neo4j has relationships, got '-\[:WROTE"):
        refuse_misfits(collection(), SQLITE)


def test_only_texts_can_be_html() -> None:
    with pytest.raises(ConfigurationError, match="properties of the text, got 'bio'"):
        refuse_misfits(Collection(html=("bio",)), SQLITE)
