"""The queue's file, as the queue's engine uses it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from embed_pipeline.domain.event import Event
from embed_pipeline.ports.clock import Clock, SystemClock
from embed_pipeline.stores.encoding import to_ms
from embed_pipeline.stores.queue.transaction import Ledger, QueueDatabase, Reading, Transaction
from embed_pipeline.stores.sqlite.connection import Database
from embed_pipeline.stores.sqlite.queue import rows, schema
from embed_pipeline.stores.sqlite.queue.jobs import SqliteJobs

T = TypeVar("T")


_APPEND_EVENT = """
INSERT INTO event (at, kind, owner, reason, job_ids, facts)
VALUES (:at, :kind, :owner, :reason, :job_ids, :facts)
"""

_RECENT_EVENTS = """
SELECT * FROM event WHERE (:kind IS NULL OR kind = :kind) ORDER BY seq DESC LIMIT :limit
"""

_READ_ALL_STATES = "SELECT name, value FROM shared_state"


@lru_cache
def _read_states(count: int) -> str:
    return f"{_READ_ALL_STATES} WHERE name IN ({', '.join('?' * count)})"


_WRITE_STATE = """
INSERT INTO shared_state (name, value) VALUES (:name, :value)
ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""

_ADD_TO_COUNTER = """
INSERT INTO counter (name, value) VALUES (:name, :amount)
ON CONFLICT (name) DO UPDATE SET value = value + excluded.value
"""

_READ_COUNTERS = "SELECT name, value FROM counter ORDER BY name"


class SqliteReading(Reading):
    """Statements without a transaction: each sees the latest commit."""

    def __init__(self, connection: sqlite3.Connection, now: datetime) -> None:
        super().__init__()
        self.connection = connection
        self._now = now
        self._jobs = SqliteJobs(self)

    @property
    def now(self) -> datetime:
        return self._now

    @property
    def jobs(self) -> SqliteJobs:
        return self._jobs

    def all(self, statement: str, **parameters: object) -> list[sqlite3.Row]:
        return self.connection.execute(statement, parameters).fetchall()

    def _load(self, names: Sequence[str] | None) -> Mapping[str, str]:
        if names is None:
            found = self.connection.execute(_READ_ALL_STATES)
        else:
            found = self.connection.execute(_read_states(len(names)), names)
        return {row["name"]: row["value"] for row in found}

    def events(self, *, limit: int, kind: str | None) -> list[Event]:
        return [rows.event_of(row) for row in self.all(_RECENT_EVENTS, kind=kind, limit=limit)]

    def counters(self) -> dict[str, int]:
        return {row["name"]: row["value"] for row in self.all(_READ_COUNTERS)}


class SqliteTransaction(SqliteReading, Transaction):
    """The file has one writer, so its lock is the lock of everything, and of the time."""

    def _lock(self, name: str) -> str | None:
        return self._load([name]).get(name)

    def _write(self, ledger: Ledger) -> None:
        for name, value in ledger.documents:
            self.all(_WRITE_STATE, name=name, value=value)
        for name, amount in ledger.amounts:
            self.all(_ADD_TO_COUNTER, name=name, amount=amount)
        for event in ledger.events:
            job_ids = rows.as_list(event["job_ids"])
            self.all(_APPEND_EVENT, **{**event, "job_ids": job_ids, "at": to_ms(self.now)})


class QueueFile(QueueDatabase):
    """`clock` is the database's clock; SQLite has none of its own, so it is the host's."""

    def __init__(self, path: Path, *, clock: Clock | None = None) -> None:
        self.clock = clock or SystemClock()
        # A power loss may take the last commits with it, never the file; discovery finds them.
        self.database = Database(path, schema=schema.prepare, synchronous="NORMAL")

    def read(self, work: Callable[[SqliteReading], T]) -> T:
        with self.database.reading() as connection:
            return work(SqliteReading(connection, self.clock.now()))

    def write(self, work: Callable[[SqliteTransaction], T]) -> T:
        with self.database.transaction() as connection:
            transaction = SqliteTransaction(connection, self.clock.now())
            answer = work(transaction)
            transaction.write_ledger()
        transaction.emit_announcements()
        return answer

    def close(self) -> None:
        self.database.close()
