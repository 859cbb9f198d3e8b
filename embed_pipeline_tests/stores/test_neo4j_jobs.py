"""The queue contracts, bound to Neo4j."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embed_pipeline.ports.job_store import JobStore
from embed_pipeline_tests.clocks import FakeClock
from embed_pipeline_tests.contracts.heeding import HeedingContract
from embed_pipeline_tests.contracts.job_store.cleanup import CleanupContract, StatusContract
from embed_pipeline_tests.contracts.job_store.complete import CompleteContract
from embed_pipeline_tests.contracts.job_store.control import (
    BreakerContract,
    CountersContract,
    EventsContract,
    HaltContract,
    HealthContract,
)
from embed_pipeline_tests.contracts.job_store.enqueue import EnqueueContract
from embed_pipeline_tests.contracts.job_store.fail import FailContract
from embed_pipeline_tests.contracts.job_store.heartbeat import HeartbeatContract
from embed_pipeline_tests.contracts.job_store.history import CancelContract, HistoryContract
from embed_pipeline_tests.contracts.job_store.lease import LeaseContract
from embed_pipeline_tests.contracts.job_store.recover import (
    RecoverContract,
    RecoverOwnerContract,
    WorkerKillerContract,
)
from embed_pipeline_tests.contracts.job_store.release import DeferContract, ReleaseContract
from embed_pipeline_tests.contracts.rate_limiter import RateLimiterContract
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.neo4j_bed.server import Address
from embed_pipeline_tests.stores.neo4j_queue import Neo4jQueueBackend, prepared


@pytest.fixture(scope="module")
def queue_server(neo4j_queue: BedServer) -> Address:
    return prepared(neo4j_queue)


@pytest.fixture
def backend(queue_server: Address, clock: FakeClock) -> Iterator[Neo4jQueueBackend]:
    backend = Neo4jQueueBackend(queue_server, clock)
    backend.empty()
    yield backend
    backend.close()


@pytest.fixture
def store(backend: Neo4jQueueBackend) -> JobStore:
    return backend.open_store()


class TestEnqueue(EnqueueContract): ...


class TestLease(LeaseContract): ...


class TestHeartbeat(HeartbeatContract): ...


class TestRelease(ReleaseContract): ...


class TestDefer(DeferContract): ...


class TestComplete(CompleteContract): ...


class TestFail(FailContract): ...


class TestRecover(RecoverContract): ...


class TestRecoverOwner(RecoverOwnerContract): ...


class TestWorkerKiller(WorkerKillerContract): ...


class TestCleanup(CleanupContract): ...


class TestStatus(StatusContract): ...


class TestHistory(HistoryContract): ...


class TestCancel(CancelContract): ...


class TestHalt(HaltContract): ...


class TestBreaker(BreakerContract): ...


class TestHealth(HealthContract): ...


class TestEvents(EventsContract): ...


class TestCounters(CountersContract): ...


class TestRateLimiter(RateLimiterContract): ...


class TestHeeding(HeedingContract): ...
