"""One Neo4j database: how it is reached, asked, retried, and how its errors are named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

import neo4j
from neo4j.exceptions import (
    ConnectionAcquisitionTimeoutError,
    ForbiddenOnReadOnlyDatabase,
    Neo4jError,
    ServiceUnavailable,
    SessionExpired,
)

from embed_pipeline.errors import StoreBusy, StoreUnavailable
from embed_pipeline.ports.clock import Clock
from embed_pipeline.stores.neo4j.codes import fault_of
from embed_pipeline.stores.neo4j.drivers import Drivers

T = TypeVar("T")
Row = dict[str, Any]

CONNECT_TIMEOUT = timedelta(seconds=5)
RETRY_TIME = timedelta(seconds=5)
"""How long a transaction is tried again after a deadlock or a lost connection; an outage that
lasts longer is the breaker's."""

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
    ) -> None:
        self._transaction = transaction
        self._now = now
        self._name = name

    def all(self, statement: str, /, **parameters: object) -> list[Row]:
        try:
            result = self._transaction.run(statement, {"now": self._now, **parameters})
            return [dict(record) for record in result]
        except ForbiddenOnReadOnlyDatabase as error:
            # Named here already, because the driver would try it again until its time is up.
            raise self._name(error) from error

    def one(self, statement: str, /, **parameters: object) -> Row:
        """The only row; a statement that returns another number of them is a bug."""
        rows = self.all(statement, **parameters)
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
        self.uri = without_credentials(uri)
        self.database = database
        self._drivers = Drivers(
            uri,
            user=user,
            password=password,
            connect_timeout=connect_timeout,
            retry_time=retry_time,
        )
        self._clock = clock
        self._check = check
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
        """Give the connections back; the next use opens new ones."""
        self._drivers.close()

    def _managed(
        self, mode: Literal["READ", "WRITE"], work: Callable[[Tx], T], timeout: timedelta | None
    ) -> T:
        @neo4j.unit_of_work(timeout=(timeout or self._timeout).total_seconds())
        def run(transaction: neo4j.ManagedTransaction) -> T:
            return work(Tx(transaction, now=self._now_ms(), name=self._named))

        with self._named_errors(), self._session(mode) as session:
            if mode == "READ":
                return session.execute_read(run)
            return session.execute_write(run)

    def _session(self, mode: Literal["READ", "WRITE"]) -> neo4j.Session:
        self._check_once()
        return self._drivers.own().session(database=self.database, default_access_mode=mode)

    def _check_once(self) -> None:
        """Before the first use; a check that fails is made again at the next."""
        check, self._check = self._check, None
        if check is not None:
            try:
                check(self)
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
        if kind is StoreUnavailable:
            self._bolt = self._apoc = None  # another server may come back
        return kind(f"The Neo4j database {self.database} at {self.uri} {what}.")


def without_credentials(uri: str) -> str:
    """The URI without user, password and query, as it may be shown."""
    parts = urlsplit(uri)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
