"""Events and counters in the queue's database; transitions write them, this reads them back."""

from __future__ import annotations

from collections.abc import Mapping

from embed_pipeline.domain.event import Event
from embed_pipeline.ports.queue_control import Counters, Events
from embed_pipeline.stores.neo4j.driver.database import Row
from embed_pipeline.stores.neo4j.queue import rows
from embed_pipeline.stores.neo4j.queue.backend import QueueDatabase, QueueReading
from embed_pipeline.stores.neo4j.queue.cypher import control as cypher


class Neo4jEvents(Events):
    def __init__(self, queue: QueueDatabase) -> None:
        self._queue = queue

    def recent(self, *, limit: int = 100, kind: str | None = None) -> tuple[Event, ...]:
        def look_up(look: QueueReading) -> list[Row]:
            if kind is None:
                return look.all(cypher.RECENT_EVENTS, limit=limit)
            return look.all(cypher.RECENT_EVENTS_OF_KIND, limit=limit, kind=kind)

        return tuple(rows.event_of(row["event"]) for row in self._queue.read(look_up))


class Neo4jCounters(Counters):
    def __init__(self, queue: QueueDatabase) -> None:
        self._queue = queue

    def add(self, amounts: Mapping[str, int]) -> None:
        if any(amounts.values()):
            self._queue.write(lambda transaction: transaction.count(**amounts))

    def read(self) -> Mapping[str, int]:
        found = self._queue.read(lambda look: look.all(cypher.READ_COUNTERS))
        return {row["name"]: row["value"] for row in found}
