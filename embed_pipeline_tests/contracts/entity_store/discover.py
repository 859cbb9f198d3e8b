"""Discovery: valid entities without a vector, bounded by the limit, marked ones first."""

from __future__ import annotations

import pytest

from embed_pipeline.domain.embedding import Bookmark
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.errors import RequestError
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline_tests.contracts.entity_store.scene import (
    MODEL,
    GraphBackend,
    add,
    add_embedded,
    embed,
    keys,
    new,
    uid,
    uids,
    vector,
)


class DiscoverContract:
    def test_all_entities_are_read_page_by_page_in_the_order_of_keys(
        self, store: EntityStore
    ) -> None:
        add(store, 3, 1, 2)
        store.soft_delete([uid(1)])

        first = store.next_entities(limit=2)
        rest = store.next_entities(limit=2, after=first[-1].uid)

        assert (keys(first), keys(rest)) == (uids([1, 2]), uids([3]))
        assert [entity.is_valid for entity in first] == [False, True]

    def test_exactly_fifty_of_a_thousand_missing_are_returned(self, store: EntityStore) -> None:
        add(store, *range(1000))

        found = store.entities_without_embeddings(50, model=MODEL)

        assert keys(found.entities) == uids(range(50))
        assert found.bookmark == Bookmark(uid=uid(49), marked=True)

    def test_at_most_ten_are_returned_by_default(self, store: EntityStore) -> None:
        add(store, *range(12))

        assert len(store.entities_without_embeddings(model=MODEL).entities) == 10

    def test_soft_deleted_entity_is_not_discovered(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        add(store, 1, 2)
        for number in (3, 4):
            backend.insert(uid(number), name="theirs", observations=None)
        store.soft_delete([uid(1), uid(3)])

        found = store.entities_without_embeddings(100, model=MODEL)

        assert keys(found.entities) == uids([2, 4])
        assert found.bookmark is None

    def test_embedded_entity_is_not_discovered(self, store: EntityStore) -> None:
        add_embedded(store, 1)
        add(store, 2)

        assert keys(store.entities_without_embeddings(model=MODEL).entities) == [uid(2)]

    def test_marked_entities_come_first_then_those_of_other_writers(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        for number in (1, 3):
            backend.insert(uid(number), name="theirs", observations=None)
        add(store, 2, 4)

        found = store.entities_without_embeddings(3, model=MODEL)

        assert keys(found.entities) == uids([2, 4, 1])
        assert found.bookmark == Bookmark(uid=uid(1), marked=False)

    @pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 20])
    def test_paging_never_repeats_or_skips(
        self, store: EntityStore, backend: GraphBackend, size: int
    ) -> None:
        for number in range(0, 12, 2):
            backend.insert(uid(number), name="theirs", observations=None)
        add(store, *range(1, 12, 2))
        add_embedded(store, 20, 21)

        found: list[EntityUid] = []
        bookmark: Bookmark | None = None
        for _ in range(20):
            page = store.entities_without_embeddings(size, model=MODEL, after=bookmark)
            found += keys(page.entities)
            bookmark = page.bookmark
            if bookmark is None:
                break

        assert found == uids(range(1, 12, 2)) + uids(range(0, 12, 2))

    def test_paging_goes_on_while_pages_get_embedded(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        for number in range(4):
            backend.insert(uid(number), name="theirs", observations=None)
        add(store, *range(4, 9))

        first = store.entities_without_embeddings(6, model=MODEL)
        embed(store, *first.entities)
        rest = store.entities_without_embeddings(6, model=MODEL, after=first.bookmark)

        assert keys(first.entities) == uids([4, 5, 6, 7, 8, 0])
        assert keys(rest.entities) == uids([1, 2, 3])

    def test_entity_whose_vector_vanished_is_discovered(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        add_embedded(store, 1)
        backend.drop_vector(uid(1))
        store.audit_page(model=MODEL, after=None, size=10)

        assert keys(store.entities_without_embeddings(model=MODEL).entities) == [uid(1)]

    @pytest.mark.parametrize("limit", [0, -1])
    def test_limit_below_one_is_refused(self, store: EntityStore, limit: int) -> None:
        with pytest.raises(RequestError, match="at least 1"):
            store.entities_without_embeddings(limit, model=MODEL)
        with pytest.raises(RequestError, match="at least 1"):
            store.changed_entities(model=MODEL, limit=limit)


class ChangedContract:
    def test_entities_with_a_changed_text_are_found_by_key(self, store: EntityStore) -> None:
        add_embedded(store, *range(6))
        store.upsert_entities([new(n, "changed") for n in (4, 1, 3)], model=MODEL)
        add(store, 9)

        found = store.changed_entities(model=MODEL, limit=2)
        rest = store.changed_entities(model=MODEL, limit=2, after=found[-1].uid)

        assert (keys(found), keys(rest)) == (uids([1, 3]), uids([4]))
        assert found[0].texts[2] == ("changed",)

    def test_as_many_changed_as_asked_for_are_found(self, store: EntityStore) -> None:
        add_embedded(store, *range(1100))
        store.upsert_entities([new(n, "changed") for n in range(1100)], model=MODEL)

        assert keys(store.changed_entities(model=MODEL, limit=1050)) == uids(range(1050))

    def test_soft_deleted_changed_entity_is_not_found(self, store: EntityStore) -> None:
        add_embedded(store, 1)
        store.upsert_entities([new(1, "changed")], model=MODEL)
        store.soft_delete([uid(1)])

        assert store.changed_entities(model=MODEL, limit=10) == ()

    def test_marked_entity_with_the_right_vector_is_not_found(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        (entity,) = add_embedded(store, 1)
        backend.replace_vector(uid(1), vector(1, 2))
        store.upsert_entities([new(1, "B")], model=MODEL)
        store.upsert_entities([new(1)], model=MODEL)

        assert backend.is_marked(entity.uid)  # for its dimensions, which the walk finds
        assert store.changed_entities(model=MODEL, limit=10) == ()
