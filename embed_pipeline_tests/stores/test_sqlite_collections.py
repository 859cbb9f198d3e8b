"""Several collections in SQLite; and the contracts of one, beside another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from embed_pipeline.domain.collection import Collection, Standing
from embed_pipeline.domain.recovery import QueuePolicy
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline.stores import graph_backend
from embed_pipeline.stores.config import StoreConfig
from embed_pipeline_tests.clocks import FakeClock
from embed_pipeline_tests.contracts.binding import COLLECTION_CONTRACTS, GRAPH_CONTRACTS, bind
from embed_pipeline_tests.contracts.collections import BOOKS
from embed_pipeline_tests.stores.sqlite_graph import SqliteGraphBackend


class SqliteSeveral(SqliteGraphBackend):
    """The contracts of one collection are kept by the first of two."""

    mapping = Collection(standing=Standing(others=(BOOKS,)))

    def __init__(self, path: Path, clock: FakeClock) -> None:
        super().__init__(path, clock)
        self._several: list[EntityStore] = []

    def open_store(self, *, mapping: Collection | None = None) -> EntityStore:  # type: ignore[override]
        return self.open_several((mapping or Collection(), BOOKS))

    def open_several(self, collections: Sequence[Collection]) -> EntityStore:
        config = StoreConfig(
            home=self.path.parent,
            policy=QueuePolicy(),
            collections=tuple(collections),
            clock=self.clock,
        )
        store = graph_backend("sqlite").open_graph(config)
        self._several.append(store)
        return store

    def close(self) -> None:
        for store in self._several:
            store.close()


@pytest.fixture
def backend(tmp_path: Path, clock: FakeClock) -> Iterator[SqliteSeveral]:
    backend = SqliteSeveral(tmp_path / "graph.sqlite", clock)
    yield backend
    backend.close()


@pytest.fixture
def several_backend(backend: SqliteSeveral) -> SqliteSeveral:
    return backend


@pytest.fixture
def store(backend: SqliteSeveral) -> EntityStore:
    store = backend.open_store()
    store.probe()  # the file is made on first use, and strangers need it
    return store


@pytest.fixture
def second(backend: SqliteSeveral) -> EntityStore:
    return backend.open_store()


bind(globals(), (*GRAPH_CONTRACTS, *COLLECTION_CONTRACTS))


def test_each_collection_has_a_file_of_its_own(backend: SqliteSeveral) -> None:
    backend.open_store().counts(model="")

    found = sorted(path.name for path in backend.path.parent.glob("*.sqlite"))
    assert found == ["graph.books.sqlite", "graph.sqlite"]


def test_the_environment_of_before_goes_on_in_the_file(backend: SqliteSeveral) -> None:
    """Its uids stay bare, so nothing is embedded again."""
    single = SqliteGraphBackend(backend.path, backend.clock)
    single.open_store().probe()
    single.close()

    names = [one.name for one in backend.open_several((BOOKS, Collection())).collections]

    assert names == ["entities", "books"]
