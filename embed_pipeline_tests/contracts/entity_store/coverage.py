"""Coverage: the true state, counted; every valid entity counts exactly once."""

from __future__ import annotations

from embed_pipeline.domain.partition import Coverage
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline_tests.contracts.entity_store.scene import (
    MODEL,
    OTHER_MODEL,
    GraphBackend,
    add,
    add_embedded,
    coverage_of,
    embed,
    new,
    stored,
    uid,
    uids,
    vector,
)


class CoverageContract:
    def test_every_valid_entity_counts_exactly_once(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        add_embedded(store, *range(10))
        add(store, *range(10, 13))
        backend.insert(uid(13), name="theirs", observations=None)
        store.upsert_entities([new(0, "changed")], model=MODEL)
        backend.set_text(uid(1), "name", "changed by somebody")
        backend.relabel_vector(uid(2), OTHER_MODEL)
        backend.replace_vector(uid(3), vector(1, 2))
        backend.drop_vector(uid(4))
        store.soft_delete(uids([5, 12]))

        coverage = coverage_of(store, model=MODEL)

        assert coverage == Coverage(
            entities=12, embedded=4, missing=4, stale=2, wrong_model=1, wrong_dimension=1
        )

    def test_repaired_graph_is_covered_wholly(
        self, store: EntityStore, backend: GraphBackend
    ) -> None:
        add_embedded(store, 1, 2)
        backend.set_text(uid(1), "name", "changed by somebody")
        backend.replace_vector(uid(2), vector(1, 2))

        embed(store, stored(store, uid(1)), stored(store, uid(2)))

        assert coverage_of(store, model=MODEL).percent == 100

    def test_graph_larger_than_a_page_is_counted_exactly(self, store: EntityStore) -> None:
        add_embedded(store, *range(700))
        add(store, *range(700, 1300))

        coverage = coverage_of(store, model=MODEL)

        assert (coverage.entities, coverage.embedded, coverage.missing) == (1300, 700, 600)

    def test_empty_graph_has_no_percentage(self, store: EntityStore) -> None:
        assert coverage_of(store, model=MODEL) == Coverage()
        assert coverage_of(store, model=MODEL).percent is None
