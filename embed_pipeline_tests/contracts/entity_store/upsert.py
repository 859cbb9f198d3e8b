"""Upsert: every change of a text sets the marker, and an unchanged one changes nothing."""

from __future__ import annotations

from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline_tests.contracts.entity_store.scene import (
    MODEL,
    GraphBackend,
    add,
    add_embedded,
    keys,
    new,
    stored,
    uid,
)


class UpsertContract:
    def test_missing_entity_is_created_and_marked(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        (result,) = store.upsert_entities([new(1)], model=MODEL)

        assert (result.existing, result.changed, result.embedded) == (False, True, False)
        assert backend.is_marked(uid(1))

    def test_changed_text_sets_the_marker_and_is_a_new_version(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        (before,) = add_embedded(store, 1)

        (result,) = store.upsert_entities([new(1, "new fact")], model=MODEL)

        assert (result.existing, result.changed, result.embedded) == (True, True, False)
        assert result.entity == stored(store, uid(1))
        assert result.entity.version != before.version
        assert backend.is_marked(uid(1))

    def test_unchanged_upsert_changes_nothing(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        (before,) = add_embedded(store, 1)

        (result,) = store.upsert_entities([new(1)], model=MODEL)

        assert (result.existing, result.changed, result.embedded) == (True, False, True)
        assert stored(store, uid(1)) == before
        assert not backend.is_marked(uid(1))

    def test_soft_deleted_entity_is_revived(self, store: EntityStore) -> None:
        add_embedded(store, 1)
        store.soft_delete([uid(1)])

        (result,) = store.upsert_entities([new(1)], model=MODEL)

        assert (result.changed, result.embedded, result.entity.is_valid) == (True, True, True)
        assert stored(store, uid(1)).is_valid

    def test_what_is_not_said_stays_as_it_was(self, store: EntityStore) -> None:
        add(store, 1)

        store.upsert_entities([NewEntity(uid=uid(1), name="renamed")], model=MODEL)

        assert stored(store, uid(1)).texts == ("renamed", "thing", ("fact 1",))
        assert stored(store, uid(1)).entity_type == "thing"

    def test_none_removes_a_property(self, store: EntityStore) -> None:
        add(store, 1)
        bare = NewEntity(uid=uid(1), name="entity 1", properties={"observations": None})

        (result,) = store.upsert_entities([bare], model=MODEL)

        assert result.changed
        assert stored(store, uid(1)).texts[2] is None

    def test_text_that_returns_to_an_embedded_version_needs_no_embedding(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        (a,) = add_embedded(store, 1)
        store.upsert_entities([new(1, "B")], model=MODEL)

        (result,) = store.upsert_entities([new(1)], model=MODEL)

        assert (result.entity, result.changed, result.embedded) == (a, True, True)
        assert not backend.is_marked(uid(1))

    def test_later_of_a_key_builds_on_the_first_within_one_call(self, store: EntityStore) -> None:
        first, later = store.upsert_entities([new(1, "first"), new(1, "later")], model=MODEL)

        assert (first.existing, later.existing, later.changed) == (False, True, True)
        assert stored(store, uid(1)) == later.entity
        assert later.entity.texts[2] == ("later",)

    def test_results_come_in_the_order_of_the_call(self, store: EntityStore) -> None:
        add(store, 2)

        results = store.upsert_entities([new(3), new(1), new(2)], model=MODEL)

        assert keys(result.entity for result in results) == [uid(3), uid(1), uid(2)]
        assert store.upsert_entities([], model=MODEL) == ()

    def test_other_peoples_changes_are_seen_by_the_next_upsert(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        add_embedded(store, 1)
        backend.set_text(uid(1), "observations", ("theirs",))

        (result,) = store.upsert_entities([new(1, "theirs")], model=MODEL)

        assert (result.changed, result.embedded) == (False, False)
