"""The queue's schema, as the queue's engine uses it."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from psycopg import Cursor
from psycopg.rows import DictRow, RowFactory, dict_row, tuple_row

from embed_pipeline.domain.job import JobId, JobKey, JobRequest
from embed_pipeline.domain.lease import Head
from embed_pipeline.domain.transition import KnownJob
from embed_pipeline.ports.clock import Clock
from embed_pipeline.stores.config import Server
from embed_pipeline.stores.encoding import from_us, to_ms
from embed_pipeline.stores.postgres.connection import Connection, PostgresDatabase
from embed_pipeline.stores.postgres.queue import schema, sql
from embed_pipeline.stores.queue.job_table import LeaseView
from embed_pipeline.stores.queue.sql.jobs import SqlJobs
from embed_pipeline.stores.queue.sql.reading import SqlReading, known_job_of
from embed_pipeline.stores.queue.sql.statements import LEASED_BEFORE
from embed_pipeline.stores.queue.transaction import Ledger, QueueDatabase, Reading, Transaction

T = TypeVar("T")


class PostgresReading(SqlReading):
    """Statements without a transaction: each sees the latest commit."""

    def __init__(self, connection: Connection, schema_name: str, clock: Clock | None) -> None:
        super().__init__()
        self._connection = connection
        self._schema = schema_name
        self._clock = clock
        self._now: datetime | None = None
        self._jobs = PostgresJobs(self)

    @property
    def now(self) -> datetime:
        return self._now or self.set_now(self.all(sql.NOW)[0]["now"])

    def set_now(self, microseconds: int) -> datetime:
        self._now = from_us(microseconds) if self._clock is None else self._clock.now()
        return self._now

    @property
    def jobs(self) -> PostgresJobs:
        return self._jobs

    def all(self, statement: str, **parameters: object) -> list[DictRow]:
        return self._execute(dict_row, statement, parameters).fetchall()

    def tuples(self, statement: str, **parameters: object) -> list[tuple[Any, ...]]:
        return self._execute(tuple_row, statement, parameters).fetchall()

    def run(self, statement: str, **parameters: object) -> None:
        """Without an answer, and so without waiting for one."""
        self._execute(tuple_row, statement, parameters)

    def listed(self, values: Iterable[object]) -> list[object]:
        return list(values)

    def _execute(
        self, rows: RowFactory[T], statement: str, parameters: dict[str, object]
    ) -> Cursor[T]:
        if self._clock is not None:
            parameters["now"] = to_ms(self._clock.now())
        text = sql.rendered(statement, self._schema, has_clock=self._clock is not None)
        return self._connection.cursor(row_factory=rows).execute(text, parameters)


class PostgresJobs(SqlJobs):
    _reading: PostgresReading

    def lock_by_keys(self, keys: Sequence[JobKey]) -> Mapping[JobKey, KnownJob]:
        uids, models, versions = map(list, zip(*keys, strict=True))
        found = self._reading.tuples(sql.LOCK_BY_KEYS, uids=uids, models=models, versions=versions)
        return dict(map(known_job_of, found))

    def insert(
        self, requests: Mapping[JobId, JobRequest], *, max_attempts: int
    ) -> Collection[JobId]:
        """By key: transactions that create some of the same wait for each other in one order."""
        new = sorted(requests.items(), key=lambda numbered: numbered[1].key)
        columns = {
            name: [getattr(request, name) for _, request in new]
            for name in ("entity_uid", "model", "version", "priority", "force")
        }
        ids = [job_id for job_id, _ in new]
        return {*self._ids(sql.INSERT_JOBS, ids=ids, **columns, max_attempts=max_attempts)}

    def _save(self, names: tuple[str, ...], rows: list[dict[str, object]]) -> None:
        self._reading.run(sql.save_jobs(names), jobs=_json(rows))

    def view_for_lease(
        self, *, owner: str, token: str, model: str, documents: Sequence[str]
    ) -> LeaseView:
        whose = {"owner": owner, "token": token}
        view = self._one(sql.VIEW_FOR_LEASE, **whose, model=model, names=list(documents))
        self._reading.set_now(view["now"])
        return LeaseView(
            documents={name: json.loads(value) for name, value in view["documents"]},
            held=self._jobs(LEASED_BEFORE, **whose) if view["is_held"] else (),
            heads=[Head(*head) for head in view["heads"]],
        )


class PostgresTransaction(PostgresReading, Transaction):
    """`now` is read when it is first asked for, and again behind each lock of a document."""

    def _lock(self, name: str) -> str | None:
        found = self.all(sql.LOCK_STATE, name=name)
        if not found:
            self.run(sql.CREATE_STATE, name=name)
            found = self.all(sql.LOCK_STATE, name=name)
        self.set_now(found[0]["now"])
        value: str | None = found[0]["value"]
        return value

    def _write(self, ledger: Ledger) -> None:
        self.run(
            sql.WRITE_LEDGER,
            names=[name for name, _ in ledger.documents],
            values=[value for _, value in ledger.documents],
            counters=[name for name, _ in ledger.amounts],
            amounts=[amount for _, amount in ledger.amounts],
            events=_json(ledger.events),
        )


class PostgresQueue(QueueDatabase):
    """`clock` replaces the database's own clock, for tests."""

    def __init__(
        self, server: Server, *, clock: Clock | None = None, fail_fast: bool = False
    ) -> None:
        check = partial(schema.check, schema=server.schema)
        self.database = PostgresDatabase(server, fail_fast=fail_fast, check=check)
        self._schema = server.schema
        self._clock = clock

    def read(self, work: Callable[[Reading], T]) -> T:
        def reading(connection: Connection) -> T:
            return work(PostgresReading(connection, self._schema, self._clock))

        return self.database.read(reading)

    def write(self, work: Callable[[Transaction], T]) -> T:
        def writing(connection: Connection) -> tuple[PostgresTransaction, T]:
            transaction = PostgresTransaction(connection, self._schema, self._clock)
            answer = work(transaction)
            transaction.write_ledger()
            return transaction, answer

        transaction, answer = self.database.write(writing)
        transaction.emit_announcements()
        return answer

    def close(self) -> None:
        self.database.close()


def _json(values: Sequence[object]) -> str:
    """PostgreSQL's text has no NUL character."""
    return json.dumps(values).replace("\\u0000", "\\ufffd")
