"""Semantic search: the nearest valid entities, and how much of the graph it could see."""

from __future__ import annotations

import math

import numpy as np
import pytest

from embed_pipeline.domain.embedding import Vector
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.errors import RequestError
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline_tests.contracts.entity_store.scene import (
    MODEL,
    OTHER_MODEL,
    GraphBackend,
    add,
    new,
    register,
    uid,
    uids,
    vector,
    write,
)


def embed_with(store: EntityStore, vectors: dict[int, Vector], *, entity_type: str = "x") -> None:
    register(store)
    created = store.create_entities([new(n, entity_type=entity_type) for n in vectors], model=MODEL)
    writes = [
        write(one.entity, numbers) for one, numbers in zip(created, vectors.values(), strict=True)
    ]
    store.write_vectors(writes, model=MODEL)


def found(store: EntityStore, query: Vector, limit: int = 10) -> list[EntityUid]:
    return [hit.entity.uid for hit in store.search(query, model=MODEL, limit=limit).hits]


class SearchContract:
    def test_nearest_come_first_whatever_their_length(self, store: EntityStore) -> None:
        embed_with(
            store,
            {1: vector(0, 5, 0, 0), 2: vector(9, 9, 0, 0), 3: vector(0.1, 0, 0, 0)},
        )

        result = store.search(vector(2, 0, 0, 0), model=MODEL)

        assert [hit.entity.uid for hit in result.hits] == uids([3, 2, 1])
        assert [hit.score for hit in result.hits] == pytest.approx([1, math.sqrt(0.5), 0], abs=1e-6)

    def test_answer_tells_how_much_of_the_graph_it_could_see(self, store: EntityStore) -> None:
        embed_with(store, {1: vector(), 2: vector()})
        add(store, 3)

        result = store.search(vector(), model=MODEL, limit=1)

        assert (len(result.hits), result.searchable, result.entities) == (1, 2, 3)

    def test_only_valid_entities_are_found(self, store: EntityStore) -> None:
        embed_with(store, {1: vector(), 2: vector()})
        store.soft_delete([uid(1)])

        result = store.search(vector(), model=MODEL)

        assert [hit.entity.uid for hit in result.hits] == [uid(2)]
        assert (result.searchable, result.entities) == (1, 1)

    def test_type_filters_hits_and_not_the_counts(self, store: EntityStore) -> None:
        embed_with(store, {1: vector()}, entity_type="person")
        embed_with(store, {2: vector(), 3: vector()}, entity_type="place")

        result = store.search(vector(), model=MODEL, entity_type="place")

        assert [hit.entity.uid for hit in result.hits] == uids([2, 3])
        assert (result.searchable, result.entities) == (3, 3)

    def test_nearer_entities_of_another_type_do_not_hide_the_wanted_one(
        self, store: EntityStore
    ) -> None:
        embed_with(store, {n: vector(1, n / 100, 0, 0) for n in range(5)}, entity_type="near")
        embed_with(store, {9: vector(0, 1, 0, 0)}, entity_type="wanted")

        result = store.search(vector(1, 0, 0, 0), model=MODEL, limit=1, entity_type="wanted")

        assert [hit.entity.uid for hit in result.hits] == [uid(9)]

    def test_restored_entity_is_found_again(self, store: EntityStore) -> None:
        embed_with(store, {1: vector()})
        store.soft_delete([uid(1)])
        assert found(store, vector()) == []

        store.upsert_entities([new(1, entity_type="x")], model=MODEL)

        assert found(store, vector()) == [uid(1)]

    def test_equal_scores_are_ordered_by_key(self, store: EntityStore) -> None:
        numbers = np.random.default_rng(1).standard_normal(4).astype(np.float32)
        embed_with(store, dict.fromkeys([9, 3, 7, 1, 5], numbers))

        assert found(store, vector(), limit=3) == uids([1, 3, 5])

    def test_vectors_of_another_model_or_dimension_are_not_searched(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        embed_with(store, {1: vector(), 2: vector(), 3: vector()})
        backend.relabel_vector(uid(1), OTHER_MODEL)
        backend.replace_vector(uid(2), vector(1, 2))

        result = store.search(vector(), model=MODEL)

        assert [hit.entity.uid for hit in result.hits] == [uid(3)]
        assert result.entities == 3

    def test_stale_vector_is_searched_until_it_is_replaced(self, store: EntityStore) -> None:
        embed_with(store, {1: vector()})
        store.upsert_entities([new(1, "changed")], model=MODEL)

        (hit,) = store.search(vector(), model=MODEL).hits

        assert hit.entity.texts[2] == ("changed",)

    @pytest.mark.parametrize("query", [vector(0, 0, 0, 0), vector(1, 2), vector(1, 2, 3, np.nan)])
    def test_unusable_query_is_refused(self, store: EntityStore, query: Vector) -> None:
        register(store)

        with pytest.raises(RequestError):
            store.search(query, model=MODEL)

    @pytest.mark.parametrize("limit", [0, -5, 1001])
    def test_limit_out_of_bounds_is_refused(self, store: EntityStore, limit: int) -> None:
        register(store)

        with pytest.raises(RequestError, match="from 1 to 1000"):
            store.search(vector(), model=MODEL, limit=limit)

    def test_unknown_model_finds_nothing(self, store: EntityStore) -> None:
        embed_with(store, {1: vector()})

        result = store.search(vector(), model=OTHER_MODEL)

        assert (result.hits, result.searchable, result.entities) == ((), 0, 1)
