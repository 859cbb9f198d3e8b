"""Several collections in one graph: what every backend promises of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pytest

from embed_pipeline.domain.collection import Collection, KeyType
from embed_pipeline.domain.embedding import Bookmark, VectorDefect
from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.domain.partition import PartitionCounts
from embed_pipeline.errors import CollectionMismatch, RequestError
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline_tests.contracts.entity_store.scene import (
    MODEL,
    embed,
    keys,
    register,
    vector,
    write,
)

ENTITIES = Collection()
PEOPLE = Collection(
    name="people",
    label="Person",
    key="id",
    key_type=KeyType.INTEGER,
    fixed_type="person",
    text=("name", "bio"),
)
BOOKS = Collection(
    name="books",
    label="Book",
    key="isbn",
    name_property="title",
    type_property="genre",
    text=("title", "blurb"),
    valid_to="outOfPrint",
)
ALL = (ENTITIES, PEOPLE, BOOKS)


class SeveralBackend(Protocol):
    def open_several(self, collections: Sequence[Collection]) -> EntityStore:
        """The graph with these collections; those that are new are registered."""


def person(key: int | str, name: str = "Ada", bio: str = "She wrote programs.") -> NewEntity:
    return NewEntity(
        uid=EntityUid(str(key)), name=name, properties={"bio": bio}, collection="people"
    )


def book(key: str, title: str = "Ada", blurb: str = "A life.") -> NewEntity:
    return NewEntity(
        uid=EntityUid(key),
        name=title,
        entity_type="biography",
        properties={"blurb": blurb},
        collection="books",
    )


def thing(key: str, name: str = "Loom") -> NewEntity:
    return NewEntity(uid=EntityUid(key), name=name, entity_type="tool")


class CollectionsContract:
    @pytest.fixture
    def several(self, several_backend: SeveralBackend) -> EntityStore:
        store = several_backend.open_several(ALL)
        register(store)
        return store

    def test_uids_name_the_collection_and_are_bare_in_the_first(self, several: EntityStore) -> None:
        made = several.create_entities([book("978"), thing("t1"), person(7)], model=MODEL)

        assert keys(one.entity for one in made) == ["books/978", "t1", "people/7"]
        assert [one.entity.collection for one in made] == ["books", "entities", "people"]
        assert [one.entity.entity_type for one in made] == ["biography", "tool", "person"]
        found = several.read_entities(keys(one.entity for one in made))
        assert set(found.values()) == {one.entity for one in made}

    def test_a_uid_is_split_only_behind_a_registered_name(self, several: EntityStore) -> None:
        several.create_entities([thing("planes/7"), thing("a/b/c")], model=MODEL)

        for key in ("planes/7", "a/b/c"):
            found = several.get_entity(EntityUid(key))
            assert found is not None
            assert (found.uid, found.collection) == (key, "entities")
        for key in ("people/t1", "people/x", "people/07", "books/", "people/", "/7"):
            assert several.get_entity(EntityUid(key)) is None

    def test_an_upsert_goes_to_the_collection_that_the_uid_names(
        self, several: EntityStore
    ) -> None:
        several.create_entities([person(7)], model=MODEL)
        (made,) = several.upsert_entities(
            [NewEntity(uid=EntityUid("people/7"), name="Ada Lovelace")], model=MODEL
        )

        assert (made.existing, made.changed) == (True, True)
        assert made.entity.text == "Ada Lovelace\nShe wrote programs."

    @pytest.mark.parametrize(
        ("wrong", "sentence"),
        [
            (person("seven"), "people has integers as keys"),
            (person("07"), "people has integers as keys"),
            (person(2**63), "people has integers as keys"),
            (NewEntity(name="Ada", collection="people"), "people has integers as keys"),
            (NewEntity(name="Ada", entity_type="dog", uid=EntityUid("people/1")), "is person"),
            (NewEntity(name="Ada", collection="planes"), "there are: entities, people, books"),
        ],
    )
    def test_what_no_collection_can_have_is_refused(
        self, several: EntityStore, wrong: NewEntity, sentence: str
    ) -> None:
        with pytest.raises(RequestError, match=sentence):
            several.create_entities([thing("t1"), wrong], model=MODEL)

    def test_names_are_found_in_all_of_them_valid_ones_first(self, several: EntityStore) -> None:
        several.create_entities([thing("t1", "Ada"), person(7), book("978")], model=MODEL)
        assert several.soft_delete([EntityUid("t1")]) == ("t1",)

        assert keys(several.find_by_name("Ada")) == ["people/7", "books/978", "t1"]
        assert keys(several.find_by_name("Ada", limit=2)) == ["people/7", "books/978"]

    def test_search_finds_the_nearest_of_all_of_them(self, several: EntityStore) -> None:
        made = several.create_entities([thing("t1"), person(7), book("978")], model=MODEL)
        tool, ada, life = (one.entity for one in made)
        vectors = (vector(0, 1, 0, 0), vector(1, 0, 0, 0), vector(1, 1, 0, 0))
        writes = [write(one, v) for one, v in zip((tool, ada, life), vectors, strict=True)]
        assert several.write_vectors(writes, model=MODEL).written == ("t1", "people/7", "books/978")

        found = several.search(vector(1, 0, 0, 0), model=MODEL)
        typed = several.search(vector(1, 0, 0, 0), model=MODEL, entity_type="person")

        assert [hit.entity for hit in found.hits] == [ada, life, tool]
        assert (found.searchable, found.entities) == (3, 3)
        assert [hit.entity for hit in typed.hits] == [ada]

    def test_what_is_missing_is_counted_for_each_and_in_all(self, several: EntityStore) -> None:
        made = several.create_entities(
            [thing("t1"), person(7), person(8), person(9, bio=""), book("978")], model=MODEL
        )
        embed(several, *(one.entity for one in made[:2]))
        several.soft_delete([EntityUid("books/978")])

        counted = several.counts_by_collection(model=MODEL)

        assert {name: (one.embedded, one.missing) for name, one in counted.items()} == {
            "entities": (1, 0),
            "people": (1, 2),
            "books": (0, 0),
        }
        assert counted["books"].excluded == 1
        assert several.counts(model=MODEL) == sum(counted.values(), PartitionCounts())
        assert several.counts(model=MODEL).marked == 2

    @pytest.mark.parametrize("limit", [1, 2, 3, 100])
    def test_discovery_walks_through_all_of_them(self, several: EntityStore, limit: int) -> None:
        made = several.create_entities(
            [thing("t1"), thing("t2"), *map(person, (2, 10, -3)), book("b"), book("a")],
            model=MODEL,
        )
        several.exchange_markers({one.entity.uid: one.entity.version for one in made[1:4]})
        found: list[EntityUid] = []
        after: Bookmark | None = None
        while True:
            page = several.entities_without_embeddings(limit, model=MODEL, after=after)
            found += keys(page.entities)
            if (after := page.bookmark) is None:
                break

        marked = ["t1", "people/-3", "books/a", "books/b"]
        assert found == [*marked, "t2", "people/2", "people/10"]

    def test_walks_meet_keys_in_one_order(self, several: EntityStore) -> None:
        several.create_entities([thing("t1"), *map(person, (2, 10, -3, 0)), book("a")], model=MODEL)
        found: list[EntityUid] = []
        while page := several.next_entities(limit=2, after=found[-1] if found else None):
            found += keys(page)

        assert found == ["t1", "people/-3", "people/0", "people/2", "people/10", "books/a"]
        assert all(map(several.is_before, found, found[1:]))
        assert not any(map(several.is_before, found[1:], found))

    def test_an_audit_comes_through_all_of_them(self, several: EntityStore) -> None:
        made = several.create_entities(
            [thing("t1"), *map(person, (2, 10, 9)), book("a")], model=MODEL
        )
        embed(several, *(one.entity for one in made))
        examined, pages, after = 0, 0, None
        while True:
            page = several.audit_page(model=MODEL, after=after, size=2)
            assert page.repaired == 0
            examined, pages, after = examined + page.embedded, pages + 1, page.next_after
            if after is None:
                break

        assert examined == 5
        assert pages >= 3

    def test_a_changed_text_is_found_whatever_collection_it_is_in(
        self, several: EntityStore
    ) -> None:
        made = several.create_entities([thing("t1"), person(7), book("978")], model=MODEL)
        embed(several, *(one.entity for one in made))
        changes = [person(7, bio="She met Babbage."), book("978", blurb="New.")]
        several.upsert_entities(changes, model=MODEL)

        changed = several.changed_entities(model=MODEL, limit=1)
        rest = several.changed_entities(model=MODEL, limit=9, after=changed[-1].uid)

        assert keys([*changed, *rest]) == ["people/7", "books/978"]
        assert several.classify(keys([*changed, made[0].entity]), model=MODEL) == {
            "people/7": VectorDefect.STALE,
            "t1": None,
        }
        stale = several.write_vectors([write(made[1].entity)], model=MODEL)
        assert stale.superseded == ("people/7",)

    def test_a_paid_vector_serves_the_same_text_in_another_collection(
        self, several: EntityStore
    ) -> None:
        made = several.create_entities(
            [person(7, name="Ada", bio="A life."), book("978")], model=MODEL
        )
        embed(several, made[0].entity)

        assert made[0].entity.version == made[1].entity.version
        assert list(several.vectors_of_versions([made[1].entity.version], model=MODEL)) == [
            made[1].entity.version
        ]

    def test_the_order_of_the_file_means_nothing(self, several_backend: SeveralBackend) -> None:
        first = several_backend.open_several(ALL)
        first.create_entities([thing("t1"), person(7)], model=MODEL)

        again = several_backend.open_several(ALL[::-1])

        assert [one.name for one in again.collections] == ["entities", "people", "books"]
        assert again.get_entity(EntityUid("t1")) == first.get_entity(EntityUid("t1"))
        assert again.get_entity(EntityUid("people/7")) is not None

    def test_a_collection_that_comes_later_is_registered_behind_the_others(
        self, several_backend: SeveralBackend
    ) -> None:
        several_backend.open_several((ENTITIES, BOOKS)).models()

        later = several_backend.open_several((PEOPLE, ENTITIES, BOOKS))

        assert [one.name for one in later.collections] == ["entities", "books", "people"]

    @pytest.mark.parametrize("left", [(ENTITIES,), (ENTITIES, BOOKS), (PEOPLE, BOOKS)])
    def test_a_collection_that_is_left_out_is_refused_with_its_remedy(
        self, several_backend: SeveralBackend, left: tuple[Collection, ...]
    ) -> None:
        """Otherwise its jobs would be taken for those of deleted entities, and fail."""
        several_backend.open_several(ALL).models()

        with pytest.raises(CollectionMismatch, match="embed-pipeline collection remove"):
            several_backend.open_several(left).models()
