"""Several collections in Neo4j, where other programs write too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from embed_pipeline.domain.collection import Collection, Filter
from embed_pipeline.domain.embedding import ModelRecord
from embed_pipeline.domain.entity import Entity
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.domain.recovery import QueuePolicy
from embed_pipeline.errors import CollectionMismatch
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline.stores import graph_backend
from embed_pipeline.stores.config import InitOptions, Server, StoreConfig
from embed_pipeline_tests.clocks import FakeClock
from embed_pipeline_tests.contracts.binding import COLLECTION_CONTRACTS, bind
from embed_pipeline_tests.contracts.collections import ALL, BOOKS, ENTITIES, PEOPLE
from embed_pipeline_tests.contracts.entity_store.scene import MODEL, embed, keys, register, vector
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.stores.neo4j_graph import empty

AUTHORS = replace(
    BOOKS, name="authors", label="Author", filter=Filter(property="alive", values=(True,))
)


class Neo4jSeveral:
    def __init__(self, server: BedServer, clock: FakeClock) -> None:
        self.server, self.clock = server, clock
        self._stores: list[EntityStore] = []

    def config(self, collections: Sequence[Collection]) -> StoreConfig:
        server = self.server
        return StoreConfig(
            home=Path(),
            policy=QueuePolicy(),
            collections=tuple(collections),
            clock=self.clock,
            graph=Server(
                uri=server.uri,
                user=server.user,
                password=server.password,
                database=server.database,
            ),
        )

    def open_several(self, collections: Sequence[Collection]) -> EntityStore:
        config = self.config(collections)
        graph_backend("neo4j").initialise_graph(config, InitOptions())
        store = graph_backend("neo4j").open_graph(config)
        self._stores.append(store)
        return store

    def run(self, statement: str) -> list[dict[str, object]]:
        return [dict(row) for row in self.server.run(statement)]

    def close(self) -> None:
        for store in self._stores:
            store.close()


@pytest.fixture
def several_backend(neo4j_graph: BedServer, clock: FakeClock) -> Iterator[Neo4jSeveral]:
    empty(neo4j_graph)
    backend = Neo4jSeveral(neo4j_graph, clock)
    yield backend
    backend.close()


bind(globals(), COLLECTION_CONTRACTS)


def audit(store: EntityStore) -> None:
    after: EntityUid | None = None
    while True:
        page = store.audit_page(model=MODEL, after=after, size=100)
        after = page.next_after
        if after is None:
            return


def missing(store: EntityStore) -> list[EntityUid]:
    return keys(store.entities_without_embeddings(100, model=MODEL).entities)


def test_a_node_with_two_labels_belongs_to_the_first_collection(
    several_backend: Neo4jSeveral,
) -> None:
    several_backend.run("CREATE (:Person:Book {id: 1, isbn: 'b1', name: 'Ada', title: 'Ada'})")
    several_backend.run("CREATE (:Book {isbn: 'b2', title: 'Loom'})")
    store = several_backend.open_several(ALL)
    register(store)

    assert missing(store) == ["people/1", "books/b2"]
    assert store.get_entity(EntityUid("books/b1")) is None
    assert keys(store.find_by_name("Ada")) == ["people/1"]
    embed(store, *store.entities_without_embeddings(100, model=MODEL).entities)
    audit(store)
    counted = store.counts_by_collection(model=MODEL)
    assert [(one.embedded, one.missing, one.excluded) for one in counted.values()] == [
        (0, 0, 0),
        (1, 0, 0),
        (1, 0, 1),
    ]
    assert keys(hit.entity for hit in store.search(vector(), model=MODEL).hits) == [
        "books/b2",
        "people/1",
    ]


def test_what_a_filter_leaves_out_is_no_entity_until_it_fits(
    several_backend: Neo4jSeveral,
) -> None:
    several_backend.run(
        "CREATE (:Author {isbn: 'a', title: 'A', alive: true}),"
        " (:Author {isbn: 'b', title: 'B', alive: false}), (:Author {isbn: 'c', title: 'C'})"
    )
    store = several_backend.open_several((ENTITIES, AUTHORS))
    register(store)

    assert missing(store) == ["authors/a"]
    counted = store.counts_by_collection(model=MODEL)["authors"]
    assert (counted.missing, counted.excluded, counted.unseen) == (1, 2, 0)
    several_backend.run("MATCH (e:Author {isbn: 'b'}) SET e.alive = true")
    audit(store)
    assert missing(store) == ["authors/a", "authors/b"]


def test_nodes_that_cannot_be_named_are_counted_as_unseen(several_backend: Neo4jSeveral) -> None:
    several_backend.run(
        "CREATE (:Person {id: 1, name: 'Ada'}), (:Person {id: '2', name: 'Bob'}),"
        " (:Person {id: 3.0, name: 'Cat'}), (:Person {name: 'Dan'}),"
        " (:Entity {uid: 'people/9', name: 'Loom'}), (:Entity {uid: 'u', name: 'Wheel'})"
    )
    store = several_backend.open_several(ALL)
    register(store)

    counted = store.counts_by_collection(model=MODEL)
    assert {name: one.unseen for name, one in counted.items()} == {
        "entities": 1,
        "people": 3,
        "books": 0,
    }
    assert missing(store) == ["u", "people/1"]
    several_backend.run("MATCH (e:Person {name: 'Bob'}) SET e.id = 2")
    audit(store)
    assert missing(store) == ["u", "people/1", "people/2"]
    assert store.counts(model=MODEL).unseen == 3


def test_a_changed_recipe_is_refused_with_what_it_would_cost(
    several_backend: Neo4jSeveral,
) -> None:
    several_backend.run("CREATE (:Person {id: 1, name: 'Ada'}), (:Person {id: 2, name: 'Bob'})")
    store = several_backend.open_several(ALL)
    embed(store, *register_and_find(store))
    changed = (ENTITIES, replace(PEOPLE, text=("bio",)), BOOKS)

    with pytest.raises(CollectionMismatch, match=r"up to 2 texts .* collection accept people"):
        several_backend.open_several(changed)
    opened = graph_backend("neo4j").open_graph(several_backend.config(changed))
    with pytest.raises(CollectionMismatch, match=r"up to 2 texts .* collection accept people"):
        opened.models()
    opened.close()


def register_and_find(store: EntityStore) -> Sequence[Entity]:
    record: ModelRecord = register(store)
    return store.entities_without_embeddings(100, model=record.model).entities


def test_a_recipe_changes_freely_before_anything_is_embedded(
    several_backend: Neo4jSeveral,
) -> None:
    several_backend.run("CREATE (:Person {id: 1, name: 'Ada', note: 'x'})")
    several_backend.open_several(ALL).models()

    store = several_backend.open_several((ENTITIES, replace(PEOPLE, text=("note",)), BOOKS))

    found = store.get_entity(EntityUid("people/1"))
    assert found is not None
    assert found.text == "x"
