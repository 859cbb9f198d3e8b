"""Defects are classified by the texts as they are, whoever wrote them; cursors of walks."""

from __future__ import annotations

from embed_pipeline.domain.embedding import VectorDefect
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline_tests.contracts.entity_store.scene import (
    MODEL,
    OTHER_MODEL,
    GraphBackend,
    add,
    add_embedded,
    uid,
    uids,
    vector,
)


class ClassifyContract:
    def test_named_entities_are_classified_by_their_texts_as_they_are(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        add_embedded(store, 1, 2, 3, 4, 6)
        add(store, 5)
        backend.set_text(uid(2), "observations", ("theirs",))
        backend.relabel_vector(uid(3), OTHER_MODEL)
        backend.replace_vector(uid(4), vector(1, 2))
        store.soft_delete([uid(6)])

        found = store.classify([*uids(range(7)), EntityUid("unknown")], model=MODEL)

        assert found == {
            uid(1): None,
            uid(2): VectorDefect.STALE,
            uid(3): VectorDefect.WRONG_MODEL,
            uid(4): VectorDefect.WRONG_DIMENSION,
            uid(5): VectorDefect.MISSING,
        }
        assert store.classify([], model=MODEL) == {}

    def test_vectors_of_an_unknown_model_are_all_wrong(self, store: EntityStore) -> None:
        add_embedded(store, 1)
        add(store, 2)

        found = store.classify(uids([1, 2]), model=OTHER_MODEL)

        assert found == {uid(1): VectorDefect.WRONG_MODEL, uid(2): VectorDefect.MISSING}

    def test_cursor_is_kept_by_name_and_shared(
        self, store: EntityStore, second: EntityStore
    ) -> None:
        assert store.cursor("stale") is None

        store.save_cursor("stale", uid(7))
        store.save_cursor("missing", uid(1))
        assert second.cursor("stale") == uid(7)

        second.save_cursor("stale", None)
        assert store.cursor("stale") is None
        assert store.cursor("missing") == uid(1)
