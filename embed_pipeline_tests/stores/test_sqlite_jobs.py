"""The queue contracts, bound to SQLite."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from embed_pipeline.ports.job_store import JobStore
from embed_pipeline_tests.clocks import FakeClock
from embed_pipeline_tests.contracts.binding import QUEUE_CONTRACTS, bind
from embed_pipeline_tests.stores.sqlite_queue import SqliteQueueBackend


@pytest.fixture
def backend(tmp_path: Path, clock: FakeClock) -> Iterator[SqliteQueueBackend]:
    backend = SqliteQueueBackend(tmp_path / "queue.sqlite", clock)
    yield backend
    backend.close()


@pytest.fixture
def store(backend: SqliteQueueBackend) -> JobStore:
    return backend.open_store()


bind(globals(), QUEUE_CONTRACTS)
