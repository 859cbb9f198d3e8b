"""The model registry: the first model registers itself, a run never starts a second."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from embed_pipeline.domain.embedding import ModelRecord, ModelState
from embed_pipeline.errors import RequestError
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline_tests.contracts.entity_store.scene import (
    DIMENSIONS,
    MODEL,
    OTHER_MODEL,
    GraphBackend,
)
from embed_pipeline_tests.worker.logbook import recording


class ModelsContract:
    def test_first_model_registers_itself_as_active(
        self, store: EntityStore, second: EntityStore
    ) -> None:
        assert store.models() == ()

        record = store.register_first_model(MODEL, dimensions=DIMENSIONS)

        assert record is not None
        assert (record.model, record.dimensions) == (MODEL, DIMENSIONS)
        assert (record.vector_property, record.state) == ("embedding", ModelState.ACTIVE)
        assert second.models() == (record,)

    def test_same_model_again_returns_its_record(
        self, store: EntityStore, second: EntityStore
    ) -> None:
        record = store.register_first_model(MODEL, dimensions=DIMENSIONS)

        assert second.register_first_model(MODEL, dimensions=DIMENSIONS) == record
        assert store.models() == (record,)

    def test_the_registration_is_logged_once(self, store: EntityStore, second: EntityStore) -> None:
        with recording() as logbook:
            for one in (store, second, store):
                one.register_first_model(MODEL, dimensions=DIMENSIONS)

        (told,) = logbook.of("model.registered")
        assert (told["model"], told["dimensions"]) == (MODEL, DIMENSIONS)

    def test_another_model_is_not_registered(self, store: EntityStore) -> None:
        record = store.register_first_model(MODEL, dimensions=DIMENSIONS)

        assert store.register_first_model(OTHER_MODEL, dimensions=DIMENSIONS) is None
        assert store.models() == (record,)

    def test_unusable_dimensions_are_refused(self, store: EntityStore) -> None:
        with pytest.raises(RequestError):
            store.register_first_model(MODEL, dimensions=0)

        store.register_first_model(MODEL, dimensions=DIMENSIONS)
        with pytest.raises(RequestError, match="4 dimensions"):
            store.register_first_model(MODEL, dimensions=8)

    def test_of_many_first_models_at_once_one_is_registered(self, backend: GraphBackend) -> None:
        names = [f"mock/m{n}@4" for n in range(8)]
        stores = [backend.open_store() for _ in names]
        starting_line = Barrier(len(names))

        def register(store: EntityStore, name: str) -> ModelRecord | None:
            store.probe()
            starting_line.wait()
            return store.register_first_model(name, dimensions=4)

        with ThreadPoolExecutor(len(names)) as pool:
            records = list(pool.map(register, stores, names))

        (record,) = stores[0].models()
        assert [r for r in records if r is not None] == [record]
