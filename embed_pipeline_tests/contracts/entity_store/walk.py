"""The rolling walk: flaws are judged by the texts as they are, whoever wrote them."""

from __future__ import annotations

import pytest

from embed_pipeline.domain.embedding import VectorDefect
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.errors import RequestError
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline_tests.contracts.entity_store.scene import (
    MODEL,
    OTHER_MODEL,
    GraphBackend,
    add,
    add_embedded,
    register,
    uid,
    uids,
    vector,
)


def flaws_found(
    store: EntityStore, *wanted: VectorDefect, model: str = MODEL
) -> dict[EntityUid, VectorDefect]:
    page = store.walk(model=model, defects=wanted or tuple(VectorDefect), after=None, size=100)
    return {candidate.entity.uid: candidate.defect for candidate in page.candidates}


class WalkContract:
    def test_each_defect_is_found_and_a_good_vector_is_not(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        add_embedded(store, 1, 2, 3, 4)
        add(store, 5)
        backend.set_text(uid(2), "observations", ("theirs",))
        backend.relabel_vector(uid(3), OTHER_MODEL)
        backend.replace_vector(uid(4), vector(1, 2))

        assert flaws_found(store) == {
            uid(2): VectorDefect.STALE,
            uid(3): VectorDefect.WRONG_MODEL,
            uid(4): VectorDefect.WRONG_DIMENSION,
            uid(5): VectorDefect.MISSING,
        }
        assert flaws_found(store, VectorDefect.STALE) == {uid(2): VectorDefect.STALE}

    def test_named_entities_are_classified_as_the_walk_does(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        add_embedded(store, 1, 2, 3, 6)
        add(store, 4)
        backend.set_text(uid(2), "observations", ("theirs",))
        backend.relabel_vector(uid(3), OTHER_MODEL)
        store.soft_delete([uid(6)])

        judged = store.classify([*uids([1, 2, 3, 4, 6]), EntityUid("unknown")], model=MODEL)

        good = {uid(1): None}
        assert judged == flaws_found(store) | good
        assert store.classify([], model=MODEL) == {}

    def test_text_changed_by_another_writer_is_found_as_stale(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        add_embedded(store, 1)
        backend.set_text(uid(1), "name", "renamed by somebody")

        page = store.walk(model=MODEL, defects=[VectorDefect.STALE], after=None, size=10)

        assert page.candidates[0].entity.texts[0] == "renamed by somebody"

    def test_walk_examines_every_valid_entity_once_by_pages(self, store: EntityStore) -> None:
        add(store, *range(10))
        store.soft_delete(uids([3, 9]))

        seen: list[EntityUid] = []
        examined = 0
        after: EntityUid | None = None
        for _ in range(20):
            page = store.walk(model=MODEL, defects=[VectorDefect.MISSING], after=after, size=4)
            seen += [candidate.entity.uid for candidate in page.candidates]
            examined += page.examined
            after = page.next_after
            if after is None:
                break

        assert seen == uids([0, 1, 2, 4, 5, 6, 7, 8])
        assert examined == 8

    def test_vectors_of_an_unknown_model_are_all_wrong(self, store: EntityStore) -> None:
        add_embedded(store, 1)
        add(store, 2)

        found = flaws_found(store, model=OTHER_MODEL)

        assert found == {uid(1): VectorDefect.WRONG_MODEL, uid(2): VectorDefect.MISSING}

    def test_empty_graph_ends_the_walk_at_once(self, store: EntityStore) -> None:
        register(store)

        page = store.walk(model=MODEL, defects=tuple(VectorDefect), after=None, size=10)

        assert (page.candidates, page.examined, page.next_after) == ((), 0, None)
        with pytest.raises(RequestError):
            store.walk(model=MODEL, defects=(), after=None, size=0)

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
