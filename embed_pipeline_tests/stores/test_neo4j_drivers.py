"""One driver per process, one whole look at a schema, and a server that is given up soon."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import neo4j
import pytest

from embed_pipeline import wiring
from embed_pipeline.domain.window import RateLimit
from embed_pipeline.errors import SchemaMissing, StoreAccessDenied, StoreUnavailable
from embed_pipeline.settings import Settings, load_settings
from embed_pipeline.stores.config import StoreConfig
from embed_pipeline.stores.neo4j import open_graph, open_queue
from embed_pipeline.stores.neo4j.driver.database import CONNECT_TIMEOUT, Neo4jDatabase
from embed_pipeline_tests.clocks import SECOND
from embed_pipeline_tests.contracts.job_store.scene import take
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.stores.neo4j_graph import database_of
from embed_pipeline_tests.stores.neo4j_stores import (
    config_of,
    initialise,
    server_of,
    statements_sent,
)

LOOK = "RETURN 1 AS one"
LIMIT = RateLimit(requests=10, interval=SECOND)


@pytest.fixture
def config(neo4j_queue: BedServer, neo4j_graph: BedServer) -> StoreConfig:
    neo4j_queue.wipe()
    neo4j_graph.wipe()
    config = config_of(server_of(neo4j_queue), server_of(neo4j_graph))
    initialise(config)
    return config


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[neo4j.Driver]:
    """The drivers that are opened from now on."""
    drivers: list[neo4j.Driver] = []
    driver = neo4j.GraphDatabase.driver

    def open_driver(*given: object, **named: object) -> neo4j.Driver:
        drivers.append(driver(*given, **named))  # type: ignore[arg-type]
        return drivers[-1]

    monkeypatch.setattr(neo4j.GraphDatabase, "driver", open_driver)
    return drivers


class TestSharing:
    def test_all_that_use_a_server_share_one_driver(
        self, config: StoreConfig, opened: list[neo4j.Driver]
    ) -> None:
        with ExitStack() as stack:
            jobs = stack.enter_context(closing(open_queue(config).jobs))
            limiter = stack.enter_context(
                closing(open_queue(config).limiter(provider="mock", limit=LIMIT))
            )
            graph = stack.enter_context(closing(open_graph(config)))

            jobs.get_queue_status()
            limiter.allowance()
            graph.models()

            assert len(opened) == 2

    def test_driver_is_closed_with_its_last_user(
        self, config: StoreConfig, opened: list[neo4j.Driver]
    ) -> None:
        first, second = open_queue(config).jobs, open_queue(config).jobs
        first.get_queue_status()
        second.get_queue_status()

        first.close()
        first.close()
        second.get_queue_status()
        second.close()

        (driver,) = opened
        with pytest.raises(neo4j.exceptions.DriverError, match="closed"):
            driver.verify_connectivity()

    def test_store_that_was_not_closed_releases_its_driver_when_it_is_gone(
        self, neo4j_queue: BedServer, opened: list[neo4j.Driver]
    ) -> None:
        database = database_of(neo4j_queue)
        database.read(lambda tx: tx.one(LOOK))

        del database

        with pytest.raises(neo4j.exceptions.DriverError, match="closed"):
            opened[0].verify_connectivity()

    def test_closed_store_opens_a_driver_again_when_it_is_used(
        self, config: StoreConfig, opened: list[neo4j.Driver]
    ) -> None:
        with closing(open_queue(config).jobs) as jobs:
            jobs.get_queue_status()
            jobs.close()

            jobs.get_queue_status()

        assert len(opened) == 2

    def test_other_credentials_have_a_driver_of_their_own(
        self, neo4j_queue: BedServer, opened: list[neo4j.Driver]
    ) -> None:
        other = server_of(neo4j_queue, password="of somebody else")
        with (
            closing(database_of(neo4j_queue)) as database,
            closing(open_queue(config_of(other, other)).jobs) as jobs,
        ):
            database.read(lambda tx: tx.one(LOOK))
            with pytest.raises(StoreAccessDenied):
                jobs.get_queue_status()

        assert len(opened) == 2


class TestChecking:
    def test_schema_is_checked_once_per_process(
        self, config: StoreConfig, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for _ in range(2):  # the first may be the process's first
            sent = statements_sent(monkeypatch)
            with closing(open_queue(config).jobs) as jobs, closing(open_graph(config)) as graph:
                jobs.has_stale()
                graph.models()
            monkeypatch.undo()

        assert not [statement for statement, _ in sent if "SHOW " in statement]

    def test_database_that_was_rebuilt_is_noticed_by_who_opens_it(
        self, config: StoreConfig, neo4j_queue: BedServer, neo4j_graph: BedServer
    ) -> None:
        with closing(open_queue(config).jobs) as jobs, closing(open_graph(config)) as graph:
            jobs.has_stale()
            graph.models()
        neo4j_queue.wipe()
        neo4j_graph.wipe()

        with closing(open_queue(config).jobs) as jobs, closing(open_graph(config)) as graph:
            with pytest.raises(SchemaMissing, match="embed-pipeline init"):
                jobs.has_stale()
            with pytest.raises(SchemaMissing, match="embed-pipeline init"):
                graph.models()

    def test_queue_that_is_rebuilt_under_a_worker_names_the_command(
        self, config: StoreConfig, neo4j_queue: BedServer
    ) -> None:
        with closing(open_queue(config).jobs) as jobs:
            take(jobs)
            neo4j_queue.wipe()

            with pytest.raises(SchemaMissing, match="embed-pipeline init"):
                take(jobs)

    def test_no_thread_uses_a_database_that_is_being_checked(self, neo4j_queue: BedServer) -> None:
        begun, may_end, seen = threading.Event(), threading.Event(), []

        def check(database: Neo4jDatabase) -> None:
            database.read(lambda tx: tx.one(LOOK))
            begun.set()
            assert may_end.wait(60)
            seen.append("checked")

        def read() -> None:
            database.read(lambda tx: tx.one(LOOK))
            seen.append("read")

        server = server_of(neo4j_queue)
        database = Neo4jDatabase(
            server.uri,
            user=server.user,
            password=server.password,
            database=server.database,
            check=check,
        )
        with closing(database), ThreadPoolExecutor() as threads:
            first = threads.submit(read)
            assert begun.wait(60)
            second = threads.submit(read)
            time.sleep(0.5)
            may_end.set()
            first.result()
            second.result()

        assert seen == ["checked", "read", "read"]


@pytest.fixture
def silent() -> Iterator[str]:
    """An address where nobody answers: packets to it are dropped, as a firewall drops them."""
    with ExitStack() as stack:
        door = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):  # Linux drops what comes when the queue is full
            guest = stack.enter_context(socket.socket())
            guest.setblocking(False)
            guest.connect_ex(door.getsockname())
        yield f"bolt://127.0.0.1:{door.getsockname()[1]}"


@pytest.mark.parametrize(
    "look",
    [
        pytest.param(
            lambda s: wiring.open_job_store(s, fail_fast=True).next_due(model="m"), id="jobs"
        ),
        pytest.param(
            lambda s: wiring.limiter_of(s, wiring.open_queue(s, fail_fast=True)).allowance(),
            id="budget",
        ),
    ],
)
def test_who_is_in_a_hurry_gives_a_server_up_sooner(
    silent: str, tmp_path: Path, look: Callable[[Settings], object]
) -> None:
    settings = load_settings(
        {
            "EMBED_ENV": "test",
            "EMBED_HOME": str(tmp_path),
            "EMBED_STORE": "neo4j",
            "EMBED_QUEUE_URI": silent,
            "EMBED_QUEUE_PASSWORD": "of the queue",
            "EMBED_GRAPH_URI": "bolt://127.0.0.1:1",
            "EMBED_GRAPH_PASSWORD": "of the graph",
            "EMBEDDING_RATE_LIMIT_TOKENS": "100",
        }
    )
    began = time.monotonic()

    with pytest.raises(StoreUnavailable):
        look(settings)

    assert time.monotonic() - began < CONNECT_TIMEOUT.total_seconds()
