"""One SQLite file: how it is opened, locked, retried, and how its errors are named."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from embed_pipeline.errors import (
    EmbedPipelineError,
    StoreBusy,
    StoreCorrupted,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from embed_pipeline.stores.sqlite.files import prepare_file

BUSY_PATIENCE = 30.0
"""Seconds to wait for another process's transaction; ours last milliseconds. The time of threads
that wait behind each other runs together."""

READ_PATIENCE = 0.05
"""Seconds that SQLite itself waits: enough for a reader that meets another process's recovery."""

_PRIMARY = 0xFF  # an extended result code carries the primary one in its low byte

_ERRORS: Mapping[int, tuple[type[EmbedPipelineError], str]] = {
    sqlite3.SQLITE_BUSY: (StoreBusy, "is locked by another process"),
    sqlite3.SQLITE_LOCKED: (StoreBusy, "is locked by another connection"),
    sqlite3.SQLITE_FULL: (StoreFull, "cannot grow: the disk is full"),
    sqlite3.SQLITE_READONLY: (StoreReadOnly, "is read-only"),
    sqlite3.SQLITE_PERM: (StoreReadOnly, "may not be written by this user"),
    sqlite3.SQLITE_CORRUPT: (StoreCorrupted, "is damaged"),
    sqlite3.SQLITE_NOTADB: (StoreCorrupted, "is not a SQLite database"),
    sqlite3.SQLITE_CANTOPEN: (StoreUnavailable, "cannot be opened"),
    sqlite3.SQLITE_IOERR: (StoreUnavailable, "cannot be read or written"),
}


class Database:
    """One writer connection per process, shared by its threads behind a lock.

    SQLite has no server clock and one writer at a time: a transaction begins IMMEDIATE, so a
    read inside it can be trusted until its commit. The connection is opened on first use and
    again after a fork.
    """

    def __init__(
        self, path: Path, *, schema: Callable[[sqlite3.Connection], None], synchronous: str
    ) -> None:
        self.path = path
        self._schema = schema
        self._synchronous = synchronous
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._pid: int | None = None

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing; the connection is this thread's until the end of the block."""
        deadline = _deadline()
        with self._lock, self.translated_errors():
            connection = self._open()
            self._patiently(lambda: connection.execute("BEGIN IMMEDIATE"), until=deadline)
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                # After a full disk SQLite has rolled back already.
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Without a transaction: every statement sees the latest commit."""
        with self._lock, self.translated_errors():
            yield self._open()

    def close(self) -> None:
        with self._lock:
            if self._connection is not None and self._pid == os.getpid():
                self._connection.close()
            self._connection = None

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None and self._pid == os.getpid():
            return self._connection
        prepare_file(self.path)
        connection = sqlite3.connect(
            self.path, isolation_level=None, check_same_thread=False, timeout=READ_PATIENCE
        )
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        self._connection, self._pid = connection, os.getpid()
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.row_factory = sqlite3.Row
        wal = "PRAGMA journal_mode = WAL"
        self._patiently(lambda: connection.execute(wal), until=_deadline())
        connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        connection.execute("PRAGMA foreign_keys = ON")
        self._patiently(lambda: self._schema(connection), until=_deadline())

    def _patiently(self, action: Callable[[], Any], *, until: float) -> None:
        """Retry while the file is locked, after random pauses.

        SQLite's own busy handler waits in fixed steps, which starves one of several processes.
        """
        pause = 0.001
        while True:
            try:
                action()
            except sqlite3.OperationalError as error:
                if not is_busy(error) or time.monotonic() > until:
                    raise
                time.sleep(random.uniform(0, pause))
                pause = min(pause * 2, 0.02)
            else:
                return

    @contextmanager
    def translated_errors(self) -> Iterator[None]:
        """Faults of the database become our errors; a bug of ours stays SQLite's error."""
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & _PRIMARY
            if code not in _ERRORS:
                raise
            kind, what = _ERRORS[code]
            raise kind(f"The database {self.path} {what}.") from error


def as_list(values: Iterable[object]) -> str:
    """A list as one parameter, for `json_each`: one text and one plan for any length."""
    return _encode(list(values))


_encode = json.JSONEncoder(separators=(",", ":")).encode


def _deadline() -> float:
    return time.monotonic() + BUSY_PATIENCE


def is_busy(error: sqlite3.OperationalError) -> bool:
    return error.sqlite_errorcode & _PRIMARY in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
