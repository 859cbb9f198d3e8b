"""The queue contracts, bound to PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.stores.config import Server
from embed_pipeline_tests.clocks import FakeClock
from embed_pipeline_tests.contracts.binding import QUEUE_CONTRACTS, bind
from embed_pipeline_tests.stores.postgres_queue import PostgresQueueBackend, own_schema


@pytest.fixture(scope="module")
def server(postgres_url: str) -> Iterator[Server]:
    with own_schema(postgres_url) as server:
        yield server


@pytest.fixture
def backend(postgres_url: str, server: Server, clock: FakeClock) -> Iterator[PostgresQueueBackend]:
    backend = PostgresQueueBackend(postgres_url, server, clock)
    yield backend
    backend.close()


@pytest.fixture
def store(backend: PostgresQueueBackend) -> JobStore:
    return backend.open_store()


bind(globals(), QUEUE_CONTRACTS)
