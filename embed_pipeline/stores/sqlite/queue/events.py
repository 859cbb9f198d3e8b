"""Events and counters in the queue's file; transitions write them, this reads them back."""

from __future__ import annotations

from collections.abc import Mapping

from embed_pipeline.domain.event import Event
from embed_pipeline.ports.queue_control import Counters, Events
from embed_pipeline.stores.sqlite.queue import control_sql as sql
from embed_pipeline.stores.sqlite.queue import rows
from embed_pipeline.stores.sqlite.queue.backend import QueueFile


class SqliteEvents(Events):
    def __init__(self, queue: QueueFile) -> None:
        self._queue = queue

    def recent(self, *, limit: int = 100, kind: str | None = None) -> tuple[Event, ...]:
        with self._queue.reading() as look:
            found = look.all(sql.RECENT_EVENTS, kind=kind, limit=limit)
        return tuple(rows.event_of(row) for row in found)


class SqliteCounters(Counters):
    def __init__(self, queue: QueueFile) -> None:
        self._queue = queue

    def add(self, amounts: Mapping[str, int]) -> None:
        if any(amounts.values()):
            with self._queue.transaction() as transaction:
                transaction.count(**amounts)

    def read(self) -> Mapping[str, int]:
        with self._queue.reading() as look:
            return {row["name"]: row["value"] for row in look.all(sql.READ_COUNTERS)}
