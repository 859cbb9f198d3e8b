"""One Neo4j database: how it is reached, asked, retried, and how its errors are named."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Literal, TypeVar

import neo4j
from neo4j.exceptions import (
    ConnectionAcquisitionTimeoutError,
    ForbiddenOnReadOnlyDatabase,
    Neo4jError,
    ServiceUnavailable,
    SessionExpired,
)

from embed_pipeline.errors import SchemaMissing, StoreBusy, StoreUnavailable
from embed_pipeline.ports.clock import Clock
from embed_pipeline.stores.neo4j.driver.error_codes import fault_of
from embed_pipeline.stores.neo4j.driver.pool import ConnectionOptions, DriverReference, early_begin

T = TypeVar("T")
Row = dict[str, Any]

CONNECT_TIMEOUT = timedelta(seconds=5)
RETRY_TIME = timedelta(seconds=5)
"""How long a transaction is tried again after a deadlock or a lost connection; an outage that
lasts longer is the breaker's."""

SHORT_TIMEOUT = timedelta(seconds=1)
"""Both of them for sensors, which poll every few seconds: fail fast instead of blocking."""

TRANSACTION_TIMEOUT = timedelta(seconds=30)
"""The server checks every two seconds, so a transaction may end that much later."""

AUTOCOMMIT_TIMEOUT = timedelta(minutes=15)
"""For a statement that runs through many rows in transactions of its own."""

VECTORS_SINCE = (6, 0)
"""The Bolt version that carries packed vectors."""

FIND_PROCEDURE = """
SHOW PROCEDURES YIELD name WHERE name = $name RETURN count(*) AS found
"""

PING = "RETURN 1 AS one"

OURS = "embed_pipeline"
"""The metadata `app` of every transaction, for triggers and for people who list transactions."""

KEEP_PLAN = "CYPHER replan=skip "
"""A queue fills and empties all day long, and the server would plan its statements again each time.
Their plans do not depend on the numbers: they are right for an empty database too."""


class Tx:
    """A running transaction. Its function may run more than once, so it changes nothing else.

    Every statement may use `$now`: the milliseconds of an injected clock, otherwise null, so that
    `coalesce($now, timestamp())` is the database's clock.
    """

    def __init__(self, transaction: neo4j.ManagedTransaction, database: Neo4jDatabase) -> None:
        self._transaction = transaction
        self._database = database
        self._now = database.now_ms()

    def all(self, statement: str, /, **parameters: object) -> list[Row]:
        try:
            result = self._transaction.run(KEEP_PLAN + statement, {"now": self._now, **parameters})
            return [dict(record) for record in result]
        except ForbiddenOnReadOnlyDatabase as error:
            # Translated here already: the driver would retry its own error until the time is up.
            raise self._database.translated(error) from error

    def one(self, statement: str, /, **parameters: object) -> Row:
        """The only row. None means that the database was rebuilt: a node of its set-up is gone.

        Several are a bug.
        """
        rows = self.all(statement, **parameters)
        if not rows:
            raise SchemaMissing(
                f"{self._database.place} has lost a node that its set-up made: "
                "run `embed-pipeline init`."
            )
        assert len(rows) == 1, f"one row was expected, there are {len(rows)}"
        return rows[0]

    @property
    def server(self) -> neo4j.ServerInfo:
        """Of the connection; asked for once and then remembered by the database."""
        if self._database.server is None:
            self._database.server = self._transaction.run(PING).consume().server
        return self._database.server

    @property
    def speaks_vectors(self) -> bool:
        """Whether `neo4j.vector.Vector` may be sent; otherwise lists of floats."""
        return self.server.protocol_version >= VECTORS_SINCE


class Neo4jDatabase:
    """Shared by the threads of a process, opened on first use and again after a fork.

    `clock` replaces the database's own clock, for tests. `check` runs before the first use, which
    raises what it raises. Errors name the server and the database, never the user or password.
    """

    def __init__(
        self,
        uri: str,
        *,
        user: str,
        password: str,
        database: str,
        clock: Clock | None = None,
        connect_timeout: timedelta = CONNECT_TIMEOUT,
        retry_time: timedelta = RETRY_TIME,
        transaction_timeout: timedelta = TRANSACTION_TIMEOUT,
        check: Callable[[Neo4jDatabase], None] | None = None,
    ) -> None:
        options = ConnectionOptions(
            uri=uri,
            user=user,
            password=password,
            connect_timeout=connect_timeout,
            retry_time=retry_time,
        )
        self.uri = options.shown_uri
        self.database = database
        self._server = DriverReference(options)
        self._clock = clock
        self._check = check
        self._checking = threading.RLock()
        self._passed = check is None
        self._timeout = transaction_timeout
        self.server: neo4j.ServerInfo | None = None
        self._apoc: bool | None = None

    def __repr__(self) -> str:
        return f"Neo4jDatabase({self.uri!r}, database={self.database!r})"

    def write(self, work: Callable[[Tx], T], *, timeout: timedelta | None = None) -> T:
        """Run `work` in one transaction, again after a deadlock or a lost connection."""
        return self._managed("WRITE", work, timeout)

    def read(self, work: Callable[[Tx], T]) -> T:
        return self._managed("READ", work, None)

    def autocommit(self, statement: str, /, **parameters: object) -> list[Row]:
        """For what makes its own transactions (CALL … IN TRANSACTIONS); never run twice."""
        # A read is retried, and so removes pooled connections that died with a server's restart.
        self.read(lambda tx: tx.one(PING))
        with self._translated_errors(), self._session("WRITE") as session:
            seconds = AUTOCOMMIT_TIMEOUT.total_seconds()
            query = neo4j.Query(statement, metadata={"app": OURS}, timeout=seconds)
            result = session.run(query, {"now": self.now_ms(), **parameters})
            return [dict(record) for record in result]

    @property
    def server_info(self) -> neo4j.ServerInfo:
        return self.server or self.read(lambda tx: tx.server)

    @property
    def has_apoc(self) -> bool:
        if self._apoc is None:
            name = "apoc.periodic.iterate"
            self._apoc = self.read(lambda tx: tx.one(FIND_PROCEDURE, name=name))["found"] > 0
        return self._apoc

    def close(self) -> None:
        """Release the driver, which other stores may share; the next use takes it again."""
        self._server.release()

    def _managed(
        self, mode: Literal["READ", "WRITE"], work: Callable[[Tx], T], timeout: timedelta | None
    ) -> T:
        seconds = (timeout or self._timeout).total_seconds()

        @neo4j.unit_of_work(metadata={"app": OURS}, timeout=seconds)
        def run(transaction: neo4j.ManagedTransaction) -> T:
            return work(Tx(transaction, self))

        with self._translated_errors(), self._session(mode) as session, early_begin(session):
            if mode == "READ":
                return session.execute_read(run)
            return session.execute_write(run)

    def _session(self, mode: Literal["READ", "WRITE"]) -> neo4j.Session:
        self._check_once()
        return self._server.driver().session(database=self.database, default_access_mode=mode)

    def _check_once(self) -> None:
        """Before the first use, while other threads wait; a failed check runs again at the next."""
        if self._passed:
            return
        with self._checking:
            check, self._check = self._check, None
            if check is None:  # another thread was quicker, or these are the check's own reads
                return
            try:
                check(self)
                self._passed = True
            except BaseException:
                self._check = check
                raise

    def now_ms(self) -> int | None:
        """Of the injected clock; None without one."""
        return None if self._clock is None else round(self._clock.now().timestamp() * 1000)

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Faults of the database become our errors; a bug of ours stays the driver's error."""
        try:
            yield
        except (
            Neo4jError,
            ServiceUnavailable,
            SessionExpired,
            ConnectionAcquisitionTimeoutError,
        ) as error:
            translated = self.translated(error)
            if translated is error:
                raise
            raise translated from error

    def translated(self, error: Exception) -> Exception:
        """Our error for a fault of the database, otherwise the error itself."""
        if isinstance(error, Neo4jError):
            fault = fault_of(error.code or "", error.message or "")
            if fault is None:
                return error
        elif isinstance(error, ConnectionAcquisitionTimeoutError):
            fault = (StoreBusy, "has no connection free: too many threads use it at once")
        else:
            fault = (StoreUnavailable, "cannot be reached")
        kind, what = fault
        if issubclass(kind, StoreUnavailable):
            self.server = self._apoc = None  # another server may come back
        return kind(f"{self.place} {what}.")

    @property
    def place(self) -> str:
        return f"The Neo4j database {self.database} at {self.uri}"
