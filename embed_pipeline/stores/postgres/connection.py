"""One PostgreSQL database: how it is reached, shared by threads, retried, and its errors named."""

from __future__ import annotations

import os
import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TypeVar

import psycopg
from psycopg.abc import Buffer
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Conninfo, TransactionStatus
from psycopg.rows import DictRow, dict_row
from psycopg.types.string import StrDumper

from embed_pipeline import errors
from embed_pipeline.stores.config import Server
from embed_pipeline.telemetry import redact

T = TypeVar("T")
Connection = psycopg.Connection[DictRow]

TIMEOUT, SHORT_TIMEOUT = 5.0, 1.0
"""Seconds to connect, and to repeat a transaction after a conflict or a lost connection. The short
one is for sensors, which poll every few seconds: fail fast instead of blocking."""

# Only at this level SKIP LOCKED checks a changed row again.
BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
# For one transaction only, so that they also hold behind a pooler in transaction mode.
LIMITS = """
SELECT set_config('statement_timeout', '30s', true), set_config('lock_timeout', '10s', true),
       set_config('idle_in_transaction_session_timeout', '60s', true)
"""

# Keepalives notice a vanished server within half a minute.
_KEEPALIVE = {"keepalives_idle": "10", "keepalives_interval": "5", "keepalives_count": "3"}
_OPTIONS = _KEEPALIVE | {
    "tcp_user_timeout": "25000",
    "client_encoding": "utf8",
    "application_name": "embed-pipeline",
    "passfile": "/dev/null/none",  # not ~/.pgpass: passwords come from the settings alone
}

# libpq's own defaults of options that may not be empty.
_NOT_EMPTY = {"sslcertmode": "allow", "min_protocol_version": "3.0", "max_protocol_version": "3.0"}

_CONFLICTS = ("40001", "40P01")
_DENIED = (errors.StoreAccessDenied, "refuses our credentials")
_UNREACHABLE = (errors.StoreUnavailable, "cannot be reached")
_FAULTS: Mapping[tuple[str, ...], tuple[type[errors.EmbedPipelineError], str]] = {
    ("3F000", "42P01", "42703"): (errors.SchemaMissing, "has no queue: run `embed-pipeline init`"),
    ("42501",): (errors.StoreAccessDenied, "does not allow this user what the queue needs"),
    ("28000", "28P01"): _DENIED,
    ("53100",): (errors.StoreFull, "cannot grow: the disk is full"),
    ("25006",): (errors.StoreReadOnly, "is read-only"),
    ("XX001", "XX002"): (errors.StoreCorrupted, "is damaged"),
    ("54000",): (errors.RequestError, "cannot index a value that is this long"),
    ("55P03",): (errors.StoreBusy, "has the rows or the table locked by another session"),
    ("57014",): (errors.StoreBusy, "took too long for one statement"),
    _CONFLICTS: (errors.StoreBusy, "had a conflict or a deadlock with another transaction"),
}
# libpq gives no code for a refused connection, only the server's message.
_REFUSED = re.compile(
    r"authentication failed|no pg_hba\.conf entry|no password supplied|not permitted to log in"
    r'|permission denied for database|role ".*" does not exist'
)

_OF_PARENT_PROCESS: list[Connection] = []
"""Kept, because a collected connection closes its socket, which belongs to the parent."""


class _TextDumper(StrDumper):
    """PostgreSQL's text has no NUL character."""

    def dump(self, obj: str) -> Buffer | None:
        return super().dump(obj.replace("\0", "\ufffd") if "\0" in obj else obj)


class PostgresDatabase:
    """One connection per thread that works at the same time; opened on demand, kept for the next.

    After a fork the child opens its own. `check` is run on the first connection of a process.
    Errors name the server and the database, never the user or the password.
    """

    def __init__(
        self,
        server: Server,
        *,
        fail_fast: bool = False,
        check: Callable[[Connection], None] | None = None,
    ) -> None:
        self._timeout = SHORT_TIMEOUT if fail_fast else TIMEOUT
        self._parameters = connection_parameters(server, timeout=self._timeout)
        self.place = "{dbname} at {host}:{port}".format_map(self._parameters)
        self._check = check
        self._idle: list[Connection] = []
        self._is_checked = False
        self._pid = os.getpid()
        self._lock = threading.Lock()

    def read(self, work: Callable[[Connection], T]) -> T:
        """Without a transaction: each statement sees the latest commit."""
        return self._retry(work)

    def write(self, work: Callable[[Connection], T]) -> T:
        """In a transaction, which is repeated only while its COMMIT was not sent.

        Statements whose answer is not fetched are sent together with the next ones.
        """

        def transaction(connection: Connection) -> T:
            with connection.pipeline() as pipeline:
                connection.execute(BEGIN)
                connection.execute(LIMITS)
                result = work(connection)
                try:
                    connection.execute("COMMIT")
                    pipeline.sync()
                except psycopg.OperationalError as error:
                    if error.sqlstate in _CONFLICTS:
                        raise
                    raise self.named_error(error) from error  # it may be committed or not
            return result

        return self._retry(transaction)

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle if self._pid == os.getpid() else ():
            connection.close()

    def _retry(self, attempt: Callable[[Connection], T]) -> T:
        deadline, pause = time.monotonic() + self._timeout, 0.005
        while True:
            try:
                with self._borrow() as connection:
                    return attempt(connection)
            except psycopg.Error as error:
                if not _may_pass(error) or time.monotonic() + pause > deadline:
                    raise self.named_error(error) from error
            time.sleep(random.uniform(0, pause))
            pause = min(pause * 2, 0.5)

    @contextmanager
    def _borrow(self) -> Iterator[Connection]:
        connection = self._take_idle() or self._open()
        try:
            yield connection
        except BaseException:
            with suppress(psycopg.Error):
                connection.execute("ROLLBACK")
            raise
        finally:
            if connection.info.transaction_status is TransactionStatus.IDLE:
                with self._lock:
                    self._idle.append(connection)
            else:
                connection.close()

    def _take_idle(self) -> Connection | None:
        with self._lock:
            if self._pid != os.getpid():
                _OF_PARENT_PROCESS.extend(self._idle)
                self._idle, self._pid, self._is_checked = [], os.getpid(), False
            return self._idle.pop() if self._idle else None

    def _open(self) -> Connection:
        try:
            connection = self._connect()
        except psycopg.OperationalError as error:
            if "definition of service" not in str(error):
                raise
            # PGSERVICE cannot be overridden, and an undefined one refuses every connection.
            os.unsetenv("PGSERVICE")
            connection = self._connect()
        connection.adapters.register_dumper(str, _TextDumper)
        try:
            if self._check is not None and not self._is_checked:
                self._check(connection)
                self._is_checked = True
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect(self) -> Connection:
        # Nothing is prepared: a pooler may give every transaction another server process.
        return psycopg.connect(
            make_conninfo(**self._parameters),
            autocommit=True,
            row_factory=dict_row,
            prepare_threshold=None,
        )

    def named_error(self, error: psycopg.Error) -> Exception:
        """The error itself when only a bug can cause it."""
        said = redact(" ".join(str(error).split()))
        for states, (kind, what) in _FAULTS.items():
            if error.sqlstate in states:
                return kind(f"The database {self.place} {what} ({said}).")
        if not isinstance(error, psycopg.OperationalError):
            return error
        kind, what = _DENIED if _REFUSED.search(said) else _UNREACHABLE
        return kind(f"The database {self.place} {what} ({said}).")


def connection_parameters(server: Server, *, timeout: float) -> dict[str, str]:
    """All that libpq would otherwise read from `PG*` variables and the service file."""
    options = [option for option in Conninfo.get_defaults() if option.envvar]
    compiled = {option.keyword.decode(): (option.compiled or b"").decode() for option in options}
    del compiled["service"]  # may not be empty; a service only fills what is not given here
    defaults = {name: value or _NOT_EMPTY.get(name, "") for name, value in compiled.items()}
    given = {name: str(value) for name, value in conninfo_to_dict(server.uri).items()}
    own = {"user": server.user, "password": server.password, "dbname": server.database}
    return defaults | _OPTIONS | given | own | {"connect_timeout": str(max(2, int(timeout)))}


def _may_pass(error: psycopg.Error) -> bool:
    """Whether a repeated transaction may succeed, on a new connection where this one is lost."""
    if error.sqlstate is None:
        return isinstance(error, psycopg.OperationalError) and not _REFUSED.search(str(error))
    return error.sqlstate in _CONFLICTS or error.sqlstate.startswith(("08", "57P"))
