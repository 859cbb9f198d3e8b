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
from embed_pipeline.stores.neo4j.driver.pool import ConnectionOptions, DriverReference

T = TypeVar("T")
Row = dict[str, Any]

CONNECT_TIMEOUT = timedelta(seconds=5)
RETRY_TIME = timedelta(seconds=5)
"""How long a transaction is tried again after a deadlock or a lost connection; an outage that
lasts longer is the breaker's."""

SHORT_TIMEOUT = timedelta(seconds=1)
"""Both of them, for who looks again in seconds: rather no answer than a late one."""

TRANSACTION_TIMEOUT = timedelta(seconds=30)
"""The server looks every two seconds, so the end may come that much later."""

AUTOCOMMIT_TIMEOUT = timedelta(minutes=15)
"""For what works through many rows in transactions of its own; longer than the server's default."""

VECTORS_SINCE = (6, 0)
"""The Bolt version that carries packed vectors."""

FIND_PROCEDURE = """
SHOW PROCEDURES YIELD name WHERE name = $name RETURN count(*) AS found
"""

LOOK = "RETURN 1 AS one"

KEEP_PLAN = "CYPHER replan=skip "
"""A queue fills and empties all day long, and the server would plan and compile its statements anew
each time. Their plans do not depend on the numbers: they are right for an empty database too."""


class Tx:
    """A running transaction. Its function may run more than once, so it changes nothing else.

    Every statement may use `$now`: the milliseconds of an injected clock, else null, so that
    `coalesce($now, timestamp())` is the database's clock.
    """

    def __init__(
        self,
        transaction: neo4j.ManagedTransaction,
        *,
        now: int | None,
        name: Callable[[Exception], Exception],
        place: str,
    ) -> None:
        self._transaction = transaction
        self._now = now
        self._name = name
        self._place = place

    def all(self, statement: str, /, **parameters: object) -> list[Row]:
        try:
            result = self._transaction.run(KEEP_PLAN + statement, {"now": self._now, **parameters})
            return [dict(record) for record in result]
        except ForbiddenOnReadOnlyDatabase as error:
            # Named here already, because the driver would try it again until its time is up.
            raise self._name(error) from error

    def one(self, statement: str, /, **parameters: object) -> Row:
        """The only row. Where there is none, a node that set-up made is gone: somebody rebuilt the
        database under us. Several are a bug."""
        rows = self.all(statement, **parameters)
        if not rows:
            raise SchemaMissing(
                f"{self._place} has lost a node that its set-up made: run `embed-pipeline init`."
            )
        assert len(rows) == 1, f"one row was expected, there are {len(rows)}"
        return rows[0]

    @property
    def bolt_version(self) -> tuple[int, int]:
        return self._transaction.run(LOOK).consume().server.protocol_version


class Neo4jDatabase:
    """Shared by the threads of a process, opened on first use and again after a fork.

    `clock` replaces the database's own clock, for tests. `check` looks at the database before its
    first use; what it raises is raised there. Errors name the server and the database,
    never the user or the password.
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
        access = ConnectionOptions(
            uri=uri,
            user=user,
            password=password,
            connect_timeout=connect_timeout,
            retry_time=retry_time,
        )
        self.uri = access.shown_uri
        self.database = database
        self._server = DriverReference(access)
        self._clock = clock
        self._check = check
        self._checking = threading.RLock()
        self._passed = check is None
        self._timeout = transaction_timeout
        self._bolt: tuple[int, int] | None = None
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
        # Throws out pooled connections that died with a restart of the server.
        self.read(lambda tx: tx.one(LOOK))
        with self._named_errors(), self._session("WRITE") as session:
            query = neo4j.Query(statement, timeout=AUTOCOMMIT_TIMEOUT.total_seconds())
            result = session.run(query, {"now": self._now_ms(), **parameters})
            return [dict(record) for record in result]

    @property
    def bolt_version(self) -> tuple[int, int]:
        if self._bolt is None:
            self._bolt = self.read(lambda tx: tx.bolt_version)
        return self._bolt

    @property
    def speaks_vectors(self) -> bool:
        """Whether `neo4j.vector.Vector` may be sent; else lists of floats."""
        return self.bolt_version >= VECTORS_SINCE

    @property
    def has_apoc(self) -> bool:
        if self._apoc is None:
            name = "apoc.periodic.iterate"
            self._apoc = self.read(lambda tx: tx.one(FIND_PROCEDURE, name=name))["found"] > 0
        return self._apoc

    def close(self) -> None:
        """Let go of the connections, which may be others' too; the next use takes hold again."""
        self._server.release()

    def _managed(
        self, mode: Literal["READ", "WRITE"], work: Callable[[Tx], T], timeout: timedelta | None
    ) -> T:
        @neo4j.unit_of_work(timeout=(timeout or self._timeout).total_seconds())
        def run(transaction: neo4j.ManagedTransaction) -> T:
            return work(Tx(transaction, now=self._now_ms(), name=self._named, place=self._place))

        with self._named_errors(), self._session(mode) as session:
            if mode == "READ":
                return session.execute_read(run)
            return session.execute_write(run)

    def _session(self, mode: Literal["READ", "WRITE"]) -> neo4j.Session:
        self._check_once()
        return self._server.driver().session(database=self.database, default_access_mode=mode)

    def _check_once(self) -> None:
        """Before the first use, others waiting; a check that fails is made again at the next."""
        if self._passed:
            return
        with self._checking:
            check, self._check = self._check, None
            if check is None:  # another thread was quicker, or these are the check's own looks
                return
            try:
                check(self)
                self._passed = True
            except BaseException:
                self._check = check
                raise

    def _now_ms(self) -> int | None:
        return None if self._clock is None else round(self._clock.now().timestamp() * 1000)

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        """The border: faults of the database get our names; a bug of ours keeps its own."""
        try:
            yield
        except (
            Neo4jError,
            ServiceUnavailable,
            SessionExpired,
            ConnectionAcquisitionTimeoutError,
        ) as error:
            named = self._named(error)
            if named is error:
                raise
            raise named from error

    def _named(self, error: Exception) -> Exception:
        """Ours for a fault of the database's, else the error itself."""
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
            self._bolt = self._apoc = None  # another server may come back
        return kind(f"{self._place} {what}.")

    @property
    def _place(self) -> str:
        return f"The Neo4j database {self.database} at {self.uri}"
