"""The queue's schema, as the queue's engine uses it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache, partial
from typing import Any, LiteralString, TypeVar, cast

from psycopg import sql as composing
from psycopg.rows import DictRow

from embed_pipeline.domain.event import Event
from embed_pipeline.domain.job import JobId
from embed_pipeline.ports.clock import Clock
from embed_pipeline.stores.config import Server
from embed_pipeline.stores.encoding import from_ms, from_us, to_ms
from embed_pipeline.stores.postgres.connection import Connection, PostgresDatabase
from embed_pipeline.stores.postgres.queue import schema, sql
from embed_pipeline.stores.postgres.queue.jobs import PostgresJobs
from embed_pipeline.stores.queue.transaction import Ledger, QueueDatabase, Reading, Transaction

T = TypeVar("T")


@cache
def composed(statement: str, schema_name: str, now: str) -> bytes:
    """The only place where a name becomes text of a statement: always qualified and quoted."""
    parts: dict[str, Any] = {**schema.names(schema_name), "now": composing.SQL(cast("LiteralString", now))}
    return composing.SQL(cast("LiteralString", statement)).format(**parts).as_bytes(None)


class Session:
    """Runs statements on one connection; `clock` replaces the database's, in tests."""

    def __init__(self, connection: Connection, schema_name: str, clock: Clock | None) -> None:
        self._connection = connection
        self._schema = schema_name
        self._clock = clock
        self._now_sql = sql.CLOCK_MS if clock is None else sql.TEST_CLOCK_MS

    def all(self, statement: str, **parameters: object) -> list[DictRow]:
        if self._clock is not None:
            parameters["now"] = to_ms(self._clock.now())
        text = composed(statement, self._schema, self._now_sql)
        cursor = self._connection.execute(text, parameters)
        return cursor.fetchall() if cursor.description else []

    def one(self, statement: str, **parameters: object) -> DictRow:
        (row,) = self.all(statement, **parameters)
        return row

    def now(self, read: int | None = None) -> datetime:
        """`read` is the database's time in microseconds, where a statement had it already."""
        if self._clock is not None:
            return self._clock.now()
        return from_us(self.one(sql.NOW)["now"] if read is None else read)


class PostgresReading(Reading):
    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._jobs = PostgresJobs(session)
        self._now: datetime | None = None

    @property
    def now(self) -> datetime:
        if self._now is None:
            self._now = self._session.now()
        return self._now

    @property
    def jobs(self) -> PostgresJobs:
        return self._jobs

    def _load(self, names: Sequence[str] | None) -> Mapping[str, str]:
        found = self._session.all(sql.READ_STATES, names=None if names is None else list(names))
        return {row["name"]: row["value"] for row in found}

    def events(self, *, limit: int, kind: str | None) -> list[Event]:
        found = self._session.all(sql.RECENT_EVENTS, limit=limit, kind=kind)
        return [
            Event(**row | {"at": from_ms(row["at"]), "job_ids": tuple(map(JobId, row["job_ids"]))})
            for row in found
        ]

    def counters(self) -> dict[str, int]:
        return {row["name"]: row["value"] for row in self._session.all(sql.READ_COUNTERS)}


class PostgresTransaction(PostgresReading, Transaction):
    """`now` is read when it is first asked for, and again behind each lock of a document."""

    def _lock(self, name: str) -> str | None:
        found = self._session.all(sql.LOCK_STATE, name=name)
        if not found:
            self._session.all(sql.CREATE_STATE, name=name)
            found = self._session.all(sql.LOCK_STATE, name=name)
        (row,) = found
        self._now = self._session.now(row["now"])
        value: str | None = row["value"]
        return value

    def _write(self, ledger: Ledger) -> None:
        names, values = zip(*ledger.documents, strict=True) if ledger.documents else ((), ())
        counters, amounts = zip(*ledger.amounts, strict=True) if ledger.amounts else ((), ())
        events = [event | {"facts": json.loads(event["facts"])} for event in ledger.events]
        self._session.all(
            sql.WRITE_LEDGER,
            names=list(names),
            values=list(values),
            counters=list(counters),
            amounts=list(amounts),
            events=json.dumps(events).replace("\\u0000", "\\ufffd"),
        )


class PostgresQueue(QueueDatabase):
    """`clock` replaces the database's own clock, for tests."""

    def __init__(
        self, server: Server, *, clock: Clock | None = None, fail_fast: bool = False
    ) -> None:
        self._schema = server.schema
        self._clock = clock
        self.database = PostgresDatabase(server, fail_fast=fail_fast, check=self._check)

    def _check(self, connection: Connection) -> None:
        schema.check(connection, schema=self._schema, place=self.database.place)

    def read(self, work: Callable[[Reading], T]) -> T:
        return self.database.read(lambda connection: work(PostgresReading(self._session(connection))))

    def write(self, work: Callable[[Transaction], T]) -> T:
        transaction, result = self.database.write(partial(self._work, work))
        transaction.emit_announcements()
        return result

    def _work(
        self, work: Callable[[Transaction], T], connection: Connection
    ) -> tuple[PostgresTransaction, T]:
        transaction = PostgresTransaction(self._session(connection))
        result = work(transaction)
        transaction.write_ledger()
        return transaction, result

    def _session(self, connection: Connection) -> Session:
        return Session(connection, self._schema, self._clock)

    def close(self) -> None:
        self.database.close()
