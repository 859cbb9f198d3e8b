"""The queue contracts, bound to Neo4j."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embed_pipeline import telemetry
from embed_pipeline.errors import StoreBusy
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.stores.neo4j.driver.database import Neo4jDatabase
from embed_pipeline.stores.neo4j.queue.cypher import recovery as cypher_recovery
from embed_pipeline_tests.clocks import DAY, FakeClock
from embed_pipeline_tests.contracts.binding import QUEUE_CONTRACTS, bind
from embed_pipeline_tests.contracts.job_store.scene import (
    PERMANENT,
    add_jobs,
    kinds,
    leased_job,
    take,
)
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.neo4j_bed.server import Address
from embed_pipeline_tests.stores.neo4j_queue import Neo4jQueueBackend, connect, prepared
from embed_pipeline_tests.stores.neo4j_stores import bolt_version

FIND_APOC = """
SHOW PROCEDURES YIELD name WHERE name = 'apoc.periodic.iterate' RETURN count(*) > 0 AS found
"""


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


bind(globals(), QUEUE_CONTRACTS)


def has_apoc(backend: Neo4jQueueBackend) -> bool:
    database = connect(backend.address)
    found = database.read(lambda tx: tx.one(FIND_APOC))["found"]
    database.close()
    return bool(found)


class TestCleaning:
    """What the contract cannot see: by whose transactions it is done."""

    def test_apoc_is_used_where_the_server_has_it_and_small_transactions_elsewhere(
        self, backend: Neo4jQueueBackend
    ) -> None:
        with backend.counting_queries() as queries:
            backend.open_store().cleanup(older_than=DAY)

        sweeps = [query for query in queries if query not in ("read", "write")]
        assert all("apoc.periodic.iterate" in sweep for sweep in sweeps)
        assert len(sweeps) == (3 if has_apoc(backend) else 0), "completed, failed, events"

    def test_what_apoc_could_not_delete_is_told_and_the_rest_is_deleted(
        self,
        backend: Neo4jQueueBackend,
        clock: FakeClock,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        if not has_apoc(backend):
            pytest.skip("without APOC an error is raised by the page that meets it")
        store = backend.open_store()
        text = cypher_recovery.DELETE_JOB
        failing = text.replace("DETACH DELETE job", "SET job.x = 1 / (job.tier - job.tier)")
        monkeypatch.setattr(cypher_recovery, "DELETE_JOB", failing)
        lease, job_id = leased_job(store)
        store.complete(lease, [job_id])
        clock.advance(2 * DAY)

        with pytest.raises(StoreBusy, match="by zero"):
            store.cleanup(older_than=DAY)

        assert store.get(job_id) is not None
        assert kinds(store) == ["jobs.cleaned_up"], "older events are gone, the loss is recorded"

    def test_cleanup_without_apoc_deletes_the_same(
        self, backend: Neo4jQueueBackend, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Neo4jDatabase, "has_apoc", False)
        store = backend.open_store()
        add_jobs(store, 3)
        lease = take(store, 2)
        done, broken = lease.job_ids
        store.complete(lease, [done])
        store.fail(lease, {broken: PERMANENT})
        clock.advance(2 * DAY)

        report = store.cleanup(older_than=DAY)

        assert (report.completed, report.failed, report.events > 0) == (1, 1, True)
        assert store.get_queue_status().total == 1

    def test_missing_apoc_is_told_once(
        self, backend: Neo4jQueueBackend, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        told: list[str] = []
        monkeypatch.setattr(telemetry, "emit", lambda event, **_: told.append(event))
        monkeypatch.setattr(Neo4jDatabase, "has_apoc", False)
        store = backend.open_store()

        store.cleanup(older_than=DAY)
        store.cleanup(older_than=DAY)

        assert told == ["store.apoc_missing"]


def test_servers_of_the_long_term_release_have_apoc_here(neo4j_queue: BedServer) -> None:
    if not neo4j_queue.can_be_stopped or bolt_version(neo4j_queue) >= (6, 0):
        pytest.skip("another server was chosen")

    assert neo4j_queue.run(FIND_APOC) == [{"found": True}]
