"""The border to Neo4j, on real servers: connections, retries, and the names that errors get."""

from __future__ import annotations

import os
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from multiprocessing import get_context
from typing import Any, NoReturn

import pytest
from neo4j.exceptions import CypherSyntaxError, DatabaseError, SessionExpired

from embed_pipeline.errors import (
    ErrorCategory,
    SchemaMissing,
    StoreAccessDenied,
    StoreBusy,
    StoreUnavailable,
    TransientError,
)
from embed_pipeline.stores.neo4j.driver.database import Neo4jDatabase, Tx
from embed_pipeline_tests.clocks import SECOND, FakeClock
from embed_pipeline_tests.neo4j_bed import Address
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.neo4j_bed.server import free_port

Opener = Callable[..., Neo4jDatabase]

MOMENT = timedelta(milliseconds=100)

ADD_NODE = "CREATE (n:Thing {name: $name})"
COUNT_NODES = "MATCH (n:Thing) RETURN count(n) AS nodes"
LOCK_NODE = "MATCH (n:Thing {name: $name}) SET n.touched = coalesce(n.touched, 0) + 1"


@pytest.fixture
def opened() -> Iterator[Opener]:
    """Opens databases, and closes them at the end."""
    databases = []

    def open_database(server: BedServer | Address, **changes: Any) -> Neo4jDatabase:
        given = {"user": server.user, "password": server.password, "database": server.database}
        databases.append(Neo4jDatabase(**{"uri": server.uri, **given, **changes}))
        return databases[-1]

    yield open_database
    for database in databases:
        database.close()


@pytest.fixture
def queue(neo4j_queue: BedServer, opened: Opener) -> Neo4jDatabase:
    neo4j_queue.wipe()
    return opened(neo4j_queue)


def add(name: str) -> Callable[[Tx], None]:
    def work(tx: Tx) -> None:
        tx.all(ADD_NODE, name=name)

    return work


def count(database: Neo4jDatabase) -> int:
    return int(database.read(lambda tx: tx.one(COUNT_NODES))["nodes"])


class TestStatements:
    def test_what_is_written_is_read(self, queue: Neo4jDatabase) -> None:
        queue.write(add("a"))

        assert count(queue) == 1

    def test_a_function_that_raises_leaves_nothing_behind(self, queue: Neo4jDatabase) -> None:
        def work(tx: Tx) -> NoReturn:
            tx.all(ADD_NODE, name="a")
            raise LookupError

        with pytest.raises(LookupError):
            queue.write(work)

        assert count(queue) == 0

    def test_now_is_null_without_a_clock_so_that_the_database_uses_its_own(
        self, queue: Neo4jDatabase
    ) -> None:
        assert queue.read(lambda tx: tx.one("RETURN $now AS now"))["now"] is None

    def test_now_is_the_injected_clocks_milliseconds(
        self, neo4j_queue: BedServer, opened: Opener, clock: FakeClock
    ) -> None:
        database = opened(neo4j_queue, clock=clock)
        clock.advance(SECOND)

        now = database.read(lambda tx: tx.one("RETURN coalesce($now, timestamp()) AS now"))["now"]

        assert now == clock.now().timestamp() * 1000
        assert database.autocommit("RETURN $now AS now") == [{"now": now}]

    def test_a_statement_with_its_own_transactions_runs_in_autocommit(
        self, queue: Neo4jDatabase
    ) -> None:
        queue.write(add("a"))
        statement = "MATCH (n:Thing) CALL (n) { DETACH DELETE n } IN TRANSACTIONS OF 10 ROWS"

        with pytest.raises(DatabaseError):  # a bug of the caller's keeps its name
            queue.write(lambda tx: tx.all(statement))
        assert count(queue) == 1
        queue.autocommit(statement)

        assert count(queue) == 0

    def test_a_bug_in_a_statement_keeps_its_own_name(self, queue: Neo4jDatabase) -> None:
        with pytest.raises(CypherSyntaxError):
            queue.read(lambda tx: tx.all("this is not Cypher"))


class TestServers:
    def test_the_queues_server_has_apoc_if_it_is_the_long_term_release(
        self, neo4j_queue: BedServer, queue: Neo4jDatabase
    ) -> None:
        procedures = neo4j_queue.run(
            "SHOW PROCEDURES YIELD name WHERE name STARTS WITH 'apoc.periodic.' RETURN name"
        )

        assert queue.has_apoc is bool(procedures)

    def test_vectors_are_packed_where_the_server_speaks_bolt_6(
        self, neo4j_queue: BedServer, neo4j_graph: BedServer, opened: Opener
    ) -> None:
        for server in (neo4j_queue, neo4j_graph):
            version = server.run("CALL dbms.components() YIELD versions RETURN versions[0] AS v")
            database = opened(server)

            speaks_vectors = database.read(lambda tx: tx.speaks_vectors)
            assert speaks_vectors is version[0]["v"].startswith("202")
            assert speaks_vectors is (database.server_info.protocol_version >= (6, 0))


class TestRefusals:
    def test_a_wrong_password_is_critical_and_is_not_repeated_by_the_error(
        self, neo4j_queue: BedServer, opened: Opener
    ) -> None:
        database = opened(neo4j_queue, password="not-the-password")

        with pytest.raises(StoreAccessDenied) as caught:
            database.read(lambda tx: tx.one("RETURN 1 AS one"))

        assert caught.value.category is ErrorCategory.CRITICAL
        assert "not-the-password" not in "".join(traceback.format_exception(caught.value))

    def test_an_unknown_database_is_missing_and_named(
        self, neo4j_queue: BedServer, opened: Opener
    ) -> None:
        database = opened(neo4j_queue, database="nobodys-jobs")

        with pytest.raises(SchemaMissing, match="nobodys-jobs"):
            database.read(lambda tx: tx.one("RETURN 1 AS one"))

    @pytest.mark.parametrize("host", ["127.0.0.1", "no-such-host.invalid"])
    def test_a_server_that_is_not_there_is_unavailable_never_critical(
        self, neo4j_queue: BedServer, opened: Opener, host: str
    ) -> None:
        uri = f"bolt://{host}:{free_port()}"
        database = opened(neo4j_queue, uri=uri, retry_time=MOMENT)
        began = time.monotonic()

        with pytest.raises(StoreUnavailable) as caught:
            database.write(add("a"))

        assert caught.value.category is ErrorCategory.TRANSIENT
        assert uri in str(caught.value)
        assert time.monotonic() - began < 10

    def test_no_secret_is_shown(self, opened: Opener, neo4j_queue: BedServer) -> None:
        uri = neo4j_queue.uri.replace("bolt://", "bolt://somebody:hunter2@")

        database = opened(neo4j_queue, uri=uri)

        assert repr(database) == (
            f"Neo4jDatabase('{neo4j_queue.uri}', database='{neo4j_queue.database}')"
        )
        assert neo4j_queue.password not in repr(vars(database))


class TestContention:
    def test_the_first_retry_comes_soon(self, queue: Neo4jDatabase) -> None:
        """The driver's own pause is a second; the better of two is looked at, machines are busy."""
        tries: list[float] = []

        def work(_: Tx) -> None:
            tries.append(time.monotonic())
            if len(tries) < 3:
                raise SessionExpired("as if the connection broke")

        queue.write(work)

        first, second, third = tries
        assert min(second - first, third - second) < 0.6

    def test_a_deadlock_is_tried_again_at_once(self, queue: Neo4jDatabase) -> None:
        queue.write(add("a"))
        queue.write(add("b"))
        both_hold_one, tries = threading.Barrier(2), []

        def lock_both(first: str, second: str) -> None:
            def work(tx: Tx) -> None:
                tries.append(first)
                tx.all(LOCK_NODE, name=first)
                with suppress(threading.BrokenBarrierError):  # the second try is alone
                    both_hold_one.wait(timeout=1 if tries.count(first) == 1 else 0.001)
                tx.all(LOCK_NODE, name=second)

            queue.write(work)

        began = time.monotonic()
        threads = [threading.Thread(target=lock_both, args=pair) for pair in ("ab", "ba")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        touched = queue.read(lambda tx: tx.all("MATCH (n:Thing) RETURN n.touched AS times"))
        assert [row["times"] for row in touched] == [2, 2]
        assert len(tries) == 3
        assert time.monotonic() - began < 5

    def test_a_transaction_that_waits_too_long_for_a_lock_is_busy(
        self, neo4j_queue: BedServer, queue: Neo4jDatabase, opened: Opener
    ) -> None:
        queue.write(add("a"))
        fail_fast = opened(neo4j_queue, transaction_timeout=SECOND, retry_time=timedelta(0))

        def outer(tx: Tx) -> None:
            tx.all(LOCK_NODE, name="a")
            with pytest.raises(StoreBusy) as caught:
                fail_fast.write(lambda other: other.all(LOCK_NODE, name="a"))
            assert caught.value.category is ErrorCategory.TRANSIENT

        queue.write(outer)

    def test_after_a_fork_parent_and_child_have_connections_of_their_own(
        self, queue: Neo4jDatabase
    ) -> None:
        queue.write(add("parent"))

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # later Pythons warn of a fork with threads
            child = get_context("fork").Process(target=_add_twenty, args=(queue,))
            child.start()
        for _ in range(20):
            queue.write(add("parent"))
        child.join(30)

        assert child.exitcode == 0
        assert count(queue) == 41


def _add_twenty(database: Neo4jDatabase) -> None:
    for _ in range(20):
        database.write(add(f"child {os.getpid()}"))


@pytest.mark.slow
class TestOutage:
    @pytest.fixture(params=["queue", "graph"])
    def server(
        self, request: pytest.FixtureRequest, neo4j_queue: BedServer, neo4j_graph: BedServer
    ) -> Iterator[BedServer]:
        server = {"queue": neo4j_queue, "graph": neo4j_graph}[request.param]
        if not server.can_be_stopped:
            pytest.skip("a server named by the environment is not ours to stop")
        server.wipe()
        yield server
        server.start()

    def test_a_restart_is_never_critical_and_loses_nothing(
        self, server: BedServer, opened: Opener
    ) -> None:
        managed, autocommit = opened(server), opened(server)
        managed.write(add("before"))
        autocommit.autocommit(COUNT_NODES)

        with Asking(opened(server, retry_time=timedelta(0))) as asking:
            server.kill()
            server.start()

        assert StoreUnavailable in asking.seen
        assert all(issubclass(kind, TransientError) for kind in asking.seen)
        # Their connections died with the server; nobody notices.
        managed.write(add("after"))
        assert autocommit.autocommit(COUNT_NODES) == [{"nodes": 2}]

    def test_a_silent_server_is_unavailable_in_bounded_time(
        self, server: BedServer, opened: Opener
    ) -> None:
        """The server tells its clients how long silence may last: twice its keep-alive."""
        database = opened(server, connect_timeout=SECOND, retry_time=timedelta(0))
        database.write(add("before"))
        began = time.monotonic()

        server.freeze()
        try:
            with pytest.raises(StoreUnavailable):
                database.write(add("during"))
        finally:
            server.thaw()

        assert time.monotonic() - began < 30


class Asking:
    """Asks again and again, and keeps the kinds of the errors it meets."""

    def __init__(self, database: Neo4jDatabase) -> None:
        self.seen: set[type[BaseException]] = set()
        self._database = database
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> Asking:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _ask(self) -> None:
        while not self._stop.wait(0.02):
            try:
                count(self._database)
            except Exception as error:
                self.seen.add(type(error))
