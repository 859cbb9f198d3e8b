"""Vectors land only on valid entities that still have the embedded text (I2)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from embed_pipeline.domain.embedding import ModelRecord, ModelState, Vector
from embed_pipeline.errors import ModelNotActive, RequestError
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline_tests.contracts.entity_store.scene import (
    MODEL,
    OTHER_MODEL,
    GraphBackend,
    add,
    add_embedded,
    embed,
    new,
    register,
    stored,
    uid,
    vector,
    write,
)

FURTHER = ModelRecord(
    model=OTHER_MODEL,
    dimensions=4,
    vector_property="embedding_other",
    index_name="embedding_other_index",
    state=ModelState.FILLING,
)


class WriteContract:
    def test_written_vector_is_of_the_current_version_and_clears_the_marker(
        self, store: EntityStore, second: EntityStore, backend: GraphBackend
    ) -> None:
        register(store)
        (entity,) = add(store, 1)

        report = store.write_vectors([write(entity, vector(1, 0, 0, 0))], model=MODEL)

        assert (report.written, report.superseded, report.gone) == ((uid(1),), (), ())
        assert second.embedded_versions([uid(1), uid(2)], model=MODEL) == {uid(1): entity.version}
        assert not backend.is_marked(uid(1))

    def test_text_changed_meanwhile_supersedes_the_vector(
        self, store: EntityStore, second: EntityStore, backend: GraphBackend
    ) -> None:
        (entity,) = add(store, 1)
        second.upsert_entities([new(1, "changed")], model=MODEL)

        report = embed(store, entity)

        assert (report.written, report.superseded) == ((), (uid(1),))
        assert store.embedded_versions([uid(1)], model=MODEL) == {}
        assert backend.is_marked(uid(1))

    def test_text_changed_behind_our_back_supersedes_the_vector(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        (entity,) = add(store, 1)
        backend.set_text(uid(1), "observations", "fact one")

        assert embed(store, entity).superseded == (uid(1),)

    def test_values_that_make_the_same_text_supersede_nothing(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        (entity,) = add(store, 1)
        backend.set_text(uid(1), "observations", "fact 1")

        assert stored(store, uid(1)).texts != entity.texts
        assert embed(store, entity).written == (uid(1),)

    def test_deleted_entities_are_gone(self, store: EntityStore, backend: GraphBackend) -> None:
        soft, hard, here = add(store, 1, 2, 3)
        store.soft_delete([soft.uid])
        backend.remove(hard.uid)

        report = embed(store, soft, hard, here)

        assert (report.written, report.gone) == ((uid(3),), (uid(1), uid(2)))

    def test_new_vector_replaces_the_old_one(self, store: EntityStore) -> None:
        add_embedded(store, 1)
        store.upsert_entities([new(1, "changed")], model=MODEL)
        entity = stored(store, uid(1))

        store.write_vectors([write(entity, vector(0, 0, 0, 9))], model=MODEL)

        (found,) = store.vectors_of_versions([entity.version], model=MODEL).values()
        assert found.vector.tolist() == [0, 0, 0, 9]
        assert store.embedded_versions([uid(1)], model=MODEL) == {uid(1): entity.version}

    @pytest.mark.parametrize(
        "bad",
        [
            vector(0, 0, 0, 0),
            vector(1, np.nan, 0, 0),
            vector(1, np.inf, 0, 0),
            vector(1, 2, 3),
            vector(1, 2, 3, 4, 5),
            vector().reshape(2, 2),
        ],
    )
    def test_unusable_vector_is_refused_and_nothing_is_written(
        self, store: EntityStore, bad: Vector
    ) -> None:
        register(store)
        one, two = add(store, 1, 2)

        with pytest.raises(RequestError, match=uid(2)):
            store.write_vectors([write(one), write(two, bad)], model=MODEL)

        assert store.embedded_versions([uid(1), uid(2)], model=MODEL) == {}

    def test_model_that_takes_no_vectors_is_refused(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        register(store)
        (entity,) = add(store, 1)

        with pytest.raises(ModelNotActive, match="not registered"):
            store.write_vectors([write(entity)], model=OTHER_MODEL)
        backend.add_model(replace(FURTHER, state=ModelState.RETIRED))
        with pytest.raises(ModelNotActive, match="retired"):
            store.write_vectors([write(entity)], model=OTHER_MODEL)

    def test_marker_goes_when_every_filling_and_active_model_has_the_text(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        register(store)
        backend.add_model(FURTHER)
        (entity,) = add(store, 1)

        embed(store, entity)
        assert backend.is_marked(uid(1))

        embed(store, entity, model=OTHER_MODEL)
        assert not backend.is_marked(uid(1))

    def test_vector_of_an_older_text_on_another_model_keeps_the_marker(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        register(store)
        backend.add_model(FURTHER)
        (entity,) = add(store, 1)
        embed(store, entity, model=OTHER_MODEL)
        store.upsert_entities([new(1, "changed")], model=MODEL)

        embed(store, stored(store, uid(1)))

        assert backend.is_marked(uid(1))

    def test_marker_stays_while_no_model_takes_vectors(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        add_embedded(store, 1)
        backend.set_state(MODEL, ModelState.RETIRED)
        store.upsert_entities([new(1, "B")], model=MODEL)

        store.upsert_entities([new(1)], model=MODEL)

        assert backend.is_marked(uid(1))

    def test_empty_write_reports_nothing(self, store: EntityStore) -> None:
        report = store.write_vectors([], model=MODEL)

        assert (report.written, report.superseded, report.gone) == ((), (), ())

    def test_probe_writes_and_changes_no_entity(self, store: EntityStore) -> None:
        (entity,) = add(store, 1)

        store.probe()
        store.probe()

        assert stored(store, uid(1)) == entity


class ReuseContract:
    def test_vector_paid_for_is_found_by_its_version(self, store: EntityStore) -> None:
        twins = store.create_entities([new(n, "same", name="twin") for n in (1, 2)], model=MODEL)
        first, other = (one.entity for one in twins)
        embed(store, first)

        found = store.vectors_of_versions([other.version, "unknown"], model=MODEL)

        assert {version: it.vector.tolist() for version, it in found.items()} == {
            first.version: [1, 2, 3, 4]
        }
        assert store.vectors_of_versions([], model=MODEL) == {}

    def test_vector_of_another_model_or_dimension_is_not_reused(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        one, two = add_embedded(store, 1, 2)
        backend.relabel_vector(one.uid, OTHER_MODEL)
        backend.replace_vector(two.uid, vector(1, 2))

        assert store.vectors_of_versions([one.version, two.version], model=MODEL) == {}
        assert store.embedded_versions([one.uid, two.uid], model=MODEL) == {}
        assert store.vectors_of_versions([one.version], model=OTHER_MODEL) == {}

    def test_vector_paid_for_tells_whether_its_text_was_cut(self, store: EntityStore) -> None:
        register(store)
        cut, whole = add(store, 1, 2)
        store.write_vectors([replace(write(cut), truncated=True), write(whole)], model=MODEL)

        found = store.vectors_of_versions([cut.version, whole.version], model=MODEL)

        assert {version: it.truncated for version, it in found.items()} == {
            cut.version: True,
            whole.version: False,
        }

    @pytest.mark.parametrize(
        "invalid", [vector(0, 0, 0, 0), vector(1, np.nan, 0, 0), vector(1, np.inf, 0, 0)]
    )
    def test_invalid_vector_is_not_offered_for_reuse(
        self, store: EntityStore, backend: GraphBackend, invalid: Vector
    ) -> None:
        (entity,) = add_embedded(store, 1)
        backend.replace_vector(entity.uid, invalid)

        assert store.vectors_of_versions([entity.version], model=MODEL) == {}

    def test_deleted_entitys_vector_is_still_paid_for(self, store: EntityStore) -> None:
        (entity,) = add_embedded(store, 1)
        store.soft_delete([entity.uid])

        assert list(store.vectors_of_versions([entity.version], model=MODEL)) == [entity.version]
