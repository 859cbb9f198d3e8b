"""One connection to the reaper's database: how it is opened, used, and how its errors are named."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg.abc import AdaptContext, Buffer, Loader
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import DictRow, dict_row
from psycopg.types.datetime import DateLoader, TimestampLoader, TimestamptzLoader

from embed_pipeline.errors import (
    EmbedPipelineError,
    SchemaMissing,
    StoreAccessDenied,
    StoreBusy,
    StoreCorrupted,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from embed_pipeline.reaper.statements import LIMIT_WAITS
from embed_pipeline.telemetry import redact

Connection = psycopg.Connection[DictRow]

WAITS: Mapping[str, str] = {"statement": "30s", "lock": "10s", "idle": "60s"}
"""A sweep that hangs holds its rows' locks, and with them their workers' heartbeats."""

# Keepalives notice a vanished server within half a minute. The empty `hostaddr` hides PGHOSTADDR,
# which libpq would connect to instead of the host that the settings have checked.
_DEFAULTS: Mapping[str, str | int] = {
    "hostaddr": "",
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
    "application_name": "embed-pipeline reaper",
}

_INIT = "run `embed-pipeline reaper init`"
_BY_STATE: Mapping[str, tuple[type[EmbedPipelineError], str]] = {
    "42P01": (SchemaMissing, f"lacks a table; {_INIT}"),
    "42703": (SchemaMissing, f"lacks a column; {_INIT}"),
    "42501": (StoreAccessDenied, "does not allow this user what the reaper needs"),
    "28000": (StoreAccessDenied, "refuses our credentials"),
    "28P01": (StoreAccessDenied, "refuses our credentials"),
    "53100": (StoreFull, "cannot grow: the disk is full"),
    "25006": (StoreReadOnly, "is read-only"),
    "XX001": (StoreCorrupted, "is damaged"),
    "XX002": (StoreCorrupted, "has a damaged index"),
    "55P03": (StoreBusy, "has the rows or the table locked by another session"),
    "57014": (StoreBusy, "took too long for one statement"),
    "40001": (StoreBusy, "had a conflict with another transaction"),
    "40P01": (StoreBusy, "had a deadlock with another transaction"),
}

# libpq gives no code for a refused connection, only the server's message.
_REFUSALS = (
    "authentication failed",
    "no pg_hba.conf entry",
    "no password supplied",
    "not permitted to log in",
    "permission denied for database",
)


class PostgresDatabase:
    """One connection, opened on first use, and again after it broke.

    Threads that share the object wait for each other; a heartbeat, which must not wait, takes a
    `sibling`. The URL is never shown.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: Connection | None = None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return "PostgresDatabase()"

    def sibling(self) -> PostgresDatabase:
        return PostgresDatabase(self._url)

    @contextmanager
    def transaction(self, *, read_only: bool = False) -> Iterator[Connection]:
        """All or nothing; decisions inside see one `now()`, that of the database."""
        with self._lock, self._named_errors():
            connection = self._open()
            # Only at this level SKIP LOCKED checks a changed row again.
            connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
            connection.read_only = read_only or None  # None: as the server has it
            with connection.transaction():
                connection.execute(LIMIT_WAITS, WAITS)
                yield connection

    @contextmanager
    def session(self) -> Iterator[Connection]:
        """Each statement commits by itself: CREATE INDEX CONCURRENTLY allows no transaction."""
        with self._lock, self._named_errors():
            connection = self._open()
            connection.read_only = None
            yield connection

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _open(self) -> Connection:
        if self._connection is not None and not self._connection.closed:
            return self._connection
        try:
            self._connection = self._connect()
        except psycopg.OperationalError as error:
            if "definition of service" not in str(error):
                raise
            # PGSERVICE cannot be overridden, and an undefined one refuses every connection.
            os.unsetenv("PGSERVICE")
            self._connection = self._connect()
        tolerate_far_times(self._connection)
        return self._connection

    def _connect(self) -> Connection:
        given = conninfo_to_dict(self._url)
        defaults: dict[str, Any] = {
            name: _DEFAULTS[name] for name in _DEFAULTS if name not in given
        }
        return psycopg.connect(
            self._url,
            autocommit=True,
            row_factory=dict_row,
            prepare_threshold=None,  # a pooler may give every transaction another server process
            **defaults,
        )

    def _drop(self) -> None:
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()
        self._connection = None

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        """Raise faults of the database as our own errors; a bug keeps its psycopg error."""
        try:
            yield
        except psycopg.Error as error:
            if self._connection is not None and self._connection.broken:
                self._drop()
            named = named_error(error)
            if named is None:
                raise
            raise named from error


def named_error(error: psycopg.Error) -> EmbedPipelineError | None:
    """None for an error that only a bug, or a rule of the table's owners, can cause."""
    said = redact(str(error).strip().partition("\n")[0])
    state = error.sqlstate
    if state is not None and state in _BY_STATE:
        kind, what = _BY_STATE[state]
        return kind(f"The reaper's database {what} ({said}).")
    if not isinstance(error, psycopg.OperationalError):
        return None
    refused = any(words in said for words in _REFUSALS) or _unknown_role(said)
    if state is None and refused:
        return StoreAccessDenied(f"The reaper's database refuses our credentials ({said}).")
    return StoreUnavailable(f"The reaper's database cannot be reached ({said}).")


def _unknown_role(said: str) -> bool:
    return 'FATAL:  role "' in said and "does not exist" in said


def tolerate_far_times(context: AdaptContext) -> None:
    """Read infinity, and years that Python does not know, as the ends of Python's calendar.

    One such value would otherwise make its row unreadable, for every sweep and every claim.
    """
    assert context.adapters is not None
    for kind, loader, clipped in (
        ("timestamptz", TimestamptzLoader, lambda end: end),
        ("timestamp", TimestampLoader, lambda end: end.replace(tzinfo=None)),
        ("date", DateLoader, lambda end: end.date()),
    ):
        context.adapters.register_loader(kind, _tolerant(loader, clipped))


def _tolerant(loader: type[Loader], clipped: Callable[[datetime], object]) -> type[Loader]:
    def load(self: Loader, data: Buffer) -> object:
        try:
            return loader.load(self, data)
        except psycopg.DataError:
            return clipped(_end(data))

    return type(f"Tolerant{loader.__name__}", (loader,), {"load": load})


def _end(data: Buffer) -> datetime:
    text = bytes(data)
    past = text.startswith(b"-") or text.endswith(b"BC")
    return datetime.min.replace(tzinfo=UTC) if past else datetime.max.replace(tzinfo=UTC)
