"""The queue's file as its stores use it: transactions that carry their time, event and counts."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from embed_pipeline import telemetry
from embed_pipeline.domain.job import JobId
from embed_pipeline.ports.clock import Clock, SystemClock
from embed_pipeline.stores.encoding import to_ms
from embed_pipeline.stores.sqlite.connection import Database
from embed_pipeline.stores.sqlite.queue import control_sql as sql
from embed_pipeline.stores.sqlite.queue import rows, schema


class QueueTransaction:
    """A running transaction; `now` is read once, under the lock, so it never runs behind it."""

    def __init__(self, connection: sqlite3.Connection, now: datetime) -> None:
        self.now = now
        self.now_ms = to_ms(now)
        self.connection = connection
        self._announcements: list[tuple[str, dict[str, object]]] = []

    def all(self, statement: str, **parameters: object) -> list[sqlite3.Row]:
        return self.connection.execute(statement, parameters).fetchall()

    def run(self, statement: str, **parameters: object) -> int:
        return self.connection.execute(statement, parameters).rowcount

    def run_each(self, statement: str, parameters: Sequence[Mapping[str, object]]) -> None:
        if parameters:
            self.connection.executemany(statement, parameters)

    def in_ms(self, delay: timedelta) -> int:
        return to_ms(self.now + delay)

    def record(
        self,
        kind: str,
        *,
        owner: str | None = None,
        reason: str | None = None,
        job_ids: Sequence[JobId] = (),
        **facts: object,
    ) -> None:
        """Append the event of this call; it stands or falls with the change itself."""
        self.run(
            sql.APPEND_EVENT,
            at=self.now_ms,
            kind=kind,
            owner=owner,
            reason=reason,
            job_ids=rows.as_list(job_ids),
            facts=json.dumps(facts),
        )

    def count(self, **amounts: int) -> None:
        for name, amount in amounts.items():
            if amount:
                self.run(sql.ADD_TO_COUNTER, name=name, amount=amount)

    def announce(self, event: str, **facts: object) -> None:
        """Log after the commit: what was rolled back never happened."""
        self._announcements.append((event, facts))

    def announce_all(self) -> None:
        for event, facts in self._announcements:
            telemetry.emit(event, **facts)

    def state(self, name: str) -> dict[str, Any] | None:
        found = self.all(sql.READ_STATE, name=name)
        return json.loads(found[0]["value"]) if found else None

    def states(self, prefix: str) -> list[dict[str, Any]]:
        found = self.all(sql.READ_STATES, first=prefix, end=prefix + "\uffff")
        return [json.loads(row["value"]) for row in found]

    def set_state(self, name: str, document: Mapping[str, object]) -> None:
        self.run(sql.WRITE_STATE, name=name, value=json.dumps(document))


class QueueFile:
    """`clock` is the database's clock; SQLite has none of its own, so it is the host's."""

    def __init__(self, path: Path, *, clock: Clock | None = None) -> None:
        self.clock = clock or SystemClock()
        # A power loss may take the last commits with it, never the file; discovery finds them.
        self._database = Database(path, schema=schema.prepare, synchronous="NORMAL")

    @contextmanager
    def transaction(self) -> Iterator[QueueTransaction]:
        with self._database.transaction() as connection:
            transaction = QueueTransaction(connection, self.clock.now())
            yield transaction
        transaction.announce_all()

    @contextmanager
    def reading(self) -> Iterator[QueueTransaction]:
        with self._database.reading() as connection:
            yield QueueTransaction(connection, self.clock.now())

    def close(self) -> None:
        self._database.close()
