"""The queue's file, as the queue's engine uses it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from embed_pipeline.domain.job import JobId, JobKey, JobRequest
from embed_pipeline.domain.lease import Head
from embed_pipeline.domain.transition import KnownJob
from embed_pipeline.ports.clock import Clock
from embed_pipeline.stores.encoding import to_ms
from embed_pipeline.stores.queue.job_table import LeaseView
from embed_pipeline.stores.queue.sql.jobs import SqlJobs
from embed_pipeline.stores.queue.sql.reading import SqlReading, known_job_of
from embed_pipeline.stores.queue.sql.statements import LEASED_BEFORE
from embed_pipeline.stores.queue.transaction import Ledger, QueueDatabase, Transaction
from embed_pipeline.stores.sqlite.clock import MachineClock
from embed_pipeline.stores.sqlite.connection import Database, as_list
from embed_pipeline.stores.sqlite.queue import schema, sql

T = TypeVar("T")


class SqliteReading(SqlReading):
    """Statements without a transaction: each sees the latest commit."""

    def __init__(self, connection: sqlite3.Connection, now: datetime) -> None:
        super().__init__()
        self.connection = connection
        self._now = now
        self._now_ms = to_ms(now)
        self._jobs = SqliteJobs(self)

    @property
    def now(self) -> datetime:
        return self._now

    @property
    def jobs(self) -> SqliteJobs:
        return self._jobs

    def all(self, statement: str, **parameters: object) -> list[sqlite3.Row]:
        parameters["now"] = self._now_ms
        return self.connection.execute(sql.rendered(statement), parameters).fetchall()

    def tuples(self, statement: str, **parameters: object) -> list[sqlite3.Row]:
        return self.all(statement, **parameters)

    def run_each(
        self, statement: str, parameters: Iterable[Mapping[str, object] | tuple[object, ...]]
    ) -> None:
        self.connection.executemany(sql.rendered(statement), parameters)

    def listed(self, values: Iterable[object]) -> str:
        return as_list(values)


class SqliteJobs(SqlJobs):
    def __init__(self, reading: SqliteReading) -> None:
        super().__init__(reading)
        self._file = reading

    def lock_by_keys(self, keys: Sequence[JobKey]) -> Mapping[JobKey, KnownJob]:
        return dict(map(known_job_of, self._file.tuples(sql.FIND_BY_KEYS, keys=as_list(keys))))

    def insert(
        self, requests: Mapping[JobId, JobRequest], *, max_attempts: int
    ) -> Collection[JobId]:
        now = to_ms(self._file.now)
        self._file.run_each(
            sql.INSERT_JOB,
            (
                (job_id, *request.key, request.priority, now, now, max_attempts, request.force)
                for job_id, request in requests.items()
            ),
        )
        return requests.keys()

    def _save(self, names: tuple[str, ...], rows: list[dict[str, object]]) -> None:
        self._file.run_each(sql.save_jobs(names), rows)

    def view_for_lease(
        self, *, owner: str, token: str, model: str, documents: Sequence[str]
    ) -> LeaseView:
        heads = self._file.tuples(sql.DUE_HEADS, model=model)
        return LeaseView(
            documents=self._file.states(documents),
            held=self._jobs(LEASED_BEFORE, token=token, owner=owner),
            heads=[Head(*head) for head in heads],
        )


class SqliteTransaction(SqliteReading, Transaction):
    """The file has one writer, so its lock is the lock of everything, and of the time."""

    def _lock(self, name: str) -> str | None:
        return self._load([name]).get(name)

    def _write(self, ledger: Ledger) -> None:
        for name, value in ledger.documents:
            self.all(sql.WRITE_STATE, name=name, value=value)
        for name, amount in ledger.amounts:
            self.all(sql.ADD_TO_COUNTER, name=name, amount=amount)
        for event in ledger.events:
            self.all(sql.APPEND_EVENT, **{**event, "job_ids": as_list(event["job_ids"])})


class QueueFile(QueueDatabase):
    """`clock` is the database's clock; SQLite has none of its own, so it is the machine's."""

    def __init__(self, path: Path, *, clock: Clock | None = None) -> None:
        self.clock = clock or MachineClock()
        # A power loss may take the last commits with it, never the file; discovery finds them.
        self.database = Database(path, schema=self._prepare, synchronous="NORMAL")

    def _prepare(self, connection: sqlite3.Connection) -> None:
        schema.prepare(connection)
        if isinstance(self.clock, MachineClock):
            self.clock.anchor(connection)

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
