"""Erasing an entity: no vector is left, and none comes back."""

from __future__ import annotations

import pytest

from embed_pipeline.domain.partition import Labels
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline_tests.contracts.entity_store.scene import (
    MODEL,
    GraphBackend,
    add,
    add_embedded,
    embed,
    new,
    stored,
    uid,
    uids,
    vector,
)

ERASED = Labels(excluded="erased")


class EraseContract:
    def test_vector_and_labels_go_and_the_entity_is_excluded(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        add_embedded(store, 1, 2)

        assert store.erase(uid(1))

        assert backend.labels_of(uid(1)) == ERASED
        assert not backend.has_vector(uid(1))
        assert stored(store, uid(1)).name == new(1).name
        counts = store.counts(model=MODEL)
        assert (counts.embedded, counts.excluded, counts.missing) == (1, 1, 0)

    def test_vector_that_was_on_its_way_does_not_land(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        (entity,) = add(store, 1)
        store.erase(uid(1))

        report = embed(store, entity)

        assert (report.written, report.gone) == ((), (uid(1),))
        assert not backend.has_vector(uid(1))

    def test_nothing_that_is_written_to_it_brings_it_back(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        add_embedded(store, 1)
        store.erase(uid(1))

        store.upsert_entities([new(1, "another text")], model=MODEL)
        backend.set_label(uid(1), "NeedsEmbedding", True)
        store.audit_page(model=MODEL, after=None, size=10)

        assert not stored(store, uid(1)).is_valid
        assert "another text" in stored(store, uid(1)).text
        assert backend.labels_of(uid(1)) == ERASED
        assert store.entities_without_embeddings(model=MODEL).entities == ()
        assert store.changed_entities(model=MODEL, limit=5) == ()
        assert embed(store, stored(store, uid(1))).gone == (uid(1),)

    def test_search_does_not_find_it(self, store: EntityStore) -> None:
        add_embedded(store, 1, 2)

        store.erase(uid(1))

        found = store.search(vector(), model=MODEL).hits
        assert [hit.entity.uid for hit in found] == [uid(2)]

    @pytest.mark.parametrize("delete", [False, True])
    def test_erasing_again_changes_nothing_and_an_unknown_key_is_told(
        self, store: EntityStore, delete: bool
    ) -> None:
        add_embedded(store, 1)
        store.erase(uid(1), delete=delete)

        assert store.erase(uid(1)) is not delete
        assert not store.erase(uid(7))

    def test_entity_itself_goes_where_it_is_asked_for(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        add_embedded(store, 1, 2)

        assert store.erase(uid(1), delete=True)

        assert store.get_entity(uid(1)) is None
        assert set(store.read_entities(uids([1, 2]))) == {uid(2)}
        assert store.counts(model=MODEL).entities == 1
