"""The graph's file: who may use it, and under which names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.errors import ConfigurationError, SchemaMissing
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline.stores.sqlite.graph.mapping import quoted
from embed_pipeline_tests.clocks import FakeClock
from embed_pipeline_tests.contracts.entity_store.scene import (
    MODEL,
    add,
    coverage_of,
    embed,
    keys,
    new,
    register,
    stored,
    uid,
    vector,
)
from embed_pipeline_tests.stores.sqlite_graph import SqliteGraphBackend

PEOPLE = Collection(
    label="Person",
    key="id",
    name_property="fullName",
    type_property="kind",
    text=("title", "notes"),
    valid_to="endedAt",
)


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


class TestSchema:
    def test_file_of_another_mapping_is_refused_with_what_to_do(
        self, backend: SqliteGraphBackend
    ) -> None:
        backend.open_store().probe()

        with pytest.raises(SchemaMissing, match="set the mapping back"):
            backend.open_store(mapping=PEOPLE).probe()

    def test_file_of_a_newer_version_is_refused(self, backend: SqliteGraphBackend) -> None:
        backend.open_store().probe()
        with backend.raw() as connection:
            connection.execute("PRAGMA user_version = 99")

        with pytest.raises(SchemaMissing, match="version 99"):
            backend.open_store().probe()

    def test_file_that_is_no_graph_is_refused(self, backend: SqliteGraphBackend) -> None:
        with backend.raw() as connection:
            connection.execute("CREATE TABLE embed_job (id)")
            connection.execute("PRAGMA user_version = 1")

        with pytest.raises(SchemaMissing, match="choose another file"):
            backend.open_store().probe()

    def test_another_programs_table_of_that_name_is_not_touched(
        self, backend: SqliteGraphBackend
    ) -> None:
        with backend.raw() as connection:
            connection.execute("CREATE TABLE entity (id)")

        with pytest.raises(SchemaMissing, match="choose another label"):
            backend.open_store().probe()

        with backend.raw() as connection:
            (names,) = connection.execute("SELECT group_concat(name) FROM sqlite_master").fetchone()
        assert names == "entity"

    @pytest.mark.parametrize(
        "mapping",
        [
            Collection(label="embedding_vectors"),
            Collection(key="name"),
            Collection(text=("name", "Name")),
            Collection(text=("notes", "notes")),
            Collection(text=("needs_embedding",)),
        ],
    )
    def test_mapping_that_sqlite_cannot_hold_is_refused(
        self, backend: SqliteGraphBackend, mapping: Collection
    ) -> None:
        with pytest.raises(ConfigurationError):
            backend.open_store(mapping=mapping)

    def test_other_columns_and_tables_are_left_alone(
        self, store: EntityStore, backend: SqliteGraphBackend
    ) -> None:
        add(store, 1)
        with backend.raw() as connection:
            connection.execute("ALTER TABLE Entity ADD COLUMN colour TEXT")
            connection.execute("UPDATE Entity SET colour = 'red'")

        store.upsert_entities([new(1, "changed")], model=MODEL)

        with backend.raw() as connection:
            assert connection.execute("SELECT colour FROM Entity").fetchall() == [("red",)]

    def test_row_that_another_program_inserts_is_marked_by_itself(
        self, store: EntityStore, backend: SqliteGraphBackend
    ) -> None:
        with backend.raw() as connection:
            connection.execute("INSERT INTO Entity (uid, name) VALUES ('theirs', 'Theirs')")

        assert backend.is_marked(uid("theirs"))
        assert keys(store.entities_without_embeddings(model=MODEL).entities) == ["theirs"]


class TestMapping:
    def test_graph_with_other_names_works(self, backend: SqliteGraphBackend) -> None:
        store = backend.open_store(mapping=PEOPLE)
        register(store)
        ada = NewEntity(uid=uid("ada"), name="Ada", properties={"title": "Dr", "notes": ("x",)})

        (created,) = store.create_entities([ada], model=MODEL)
        embed(store, created.entity)

        assert created.entity.text == "Dr\nx"
        assert stored(store, uid("ada")) == created.entity
        assert store.find_by_name("Ada") == (created.entity,)
        assert store.search(vector(), model=MODEL).hits[0].entity == created.entity
        assert store.soft_delete([uid("ada")]) == ("ada",)
        (revived,) = store.upsert_entities([ada], model=MODEL)
        assert (revived.changed, revived.embedded) == (True, True)
        assert coverage_of(store, model=MODEL).percent == 100

    def test_new_name_outside_the_text_needs_no_embedding(
        self, backend: SqliteGraphBackend
    ) -> None:
        store = backend.open_store(mapping=PEOPLE)
        register(store)
        ada = NewEntity(uid=uid("ada"), name="Ada", properties={"title": "Dr"})
        embed(store, store.create_entities([ada], model=MODEL)[0].entity)

        (renamed,) = store.upsert_entities(
            [NewEntity(uid=uid("ada"), name="Ada Lovelace")], model=MODEL
        )

        assert (renamed.changed, renamed.embedded) == (True, True)
        assert stored(store, uid("ada")).name == "Ada Lovelace"

    def test_identifiers_are_quoted_whatever_they_hold(self, backend: SqliteGraphBackend) -> None:
        nasty = Collection(
            label='E"; DROP TABLE embedding_models; --',
            key="select",
            name_property='na"me',
            text=("{braces}", "order by", ":bound", "?1"),
        )
        store = backend.open_store(mapping=nasty)
        register(store)
        entity = NewEntity(uid=uid(1), name="x", properties={":bound": "y", "{braces}": ("z",)})

        (created,) = store.create_entities([entity], model=MODEL)

        assert stored(store, uid(1)).texts == (("z",), None, "y", None)
        assert embed(store, created.entity).written == (uid(1),)
        assert len(store.models()) == 1

    def test_quoting_doubles_quotes_and_refuses_what_cannot_be_quoted(self) -> None:
        assert quoted('a"b') == '"a""b"'
        for hopeless in ("", "a\x00b"):
            with pytest.raises(ValueError, match="identifier"):
                quoted(hopeless)
