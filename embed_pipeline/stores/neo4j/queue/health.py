"""Health in the queue's database: noted inside the transaction of what happened."""

from __future__ import annotations

from collections.abc import Iterable

from embed_pipeline.domain.health import HealthReport, report
from embed_pipeline.domain.job import FailureRecord
from embed_pipeline.ports.queue_control import Health
from embed_pipeline.stores.neo4j.queue.backend import QueueDatabase, QueueReading, QueueTransaction
from embed_pipeline.stores.neo4j.queue.shared_state import (
    all_breakers,
    lock_health,
    read_health,
    read_switch,
    save_health,
)
from embed_pipeline.stores.queue import health_notes


class Neo4jHealth(Health):
    def __init__(self, queue: QueueDatabase) -> None:
        self._queue = queue

    def report(self) -> HealthReport:
        def look_up(look: QueueReading) -> HealthReport:
            return report(read_health(look), switch=read_switch(look), breakers=all_breakers(look))

        return self._queue.read(look_up)


def note_success(transaction: QueueTransaction, *, count: int) -> None:
    before = lock_health(transaction)
    save_health(transaction, health_notes.succeeded(transaction, before, count=count))


def note_failures(transaction: QueueTransaction, failures: Iterable[FailureRecord]) -> None:
    before = lock_health(transaction)
    save_health(transaction, health_notes.failed(transaction, before, failures))


def note_crash_loop(transaction: QueueTransaction) -> None:
    before = lock_health(transaction)
    save_health(transaction, health_notes.crash_looped(transaction, before))
