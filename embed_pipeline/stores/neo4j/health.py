"""Health in the queue's database: noted inside the transaction of what happened."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from embed_pipeline.model.health import (
    HealthChange,
    HealthReport,
    after_failures,
    after_success,
    report,
)
from embed_pipeline.model.job import FailureRecord
from embed_pipeline.ports.queue_control import Health
from embed_pipeline.stores.neo4j.queue import QueueDatabase, QueueReading, QueueTransaction
from embed_pipeline.stores.neo4j.shared_state import (
    all_breakers,
    lock_health,
    read_health,
    read_switch,
    save_health,
)


class Neo4jHealth(Health):
    def __init__(self, queue: QueueDatabase) -> None:
        self._queue = queue

    def report(self) -> HealthReport:
        def look_up(look: QueueReading) -> HealthReport:
            return report(read_health(look), switch=read_switch(look), breakers=all_breakers(look))

        return self._queue.read(look_up)


def note_success(transaction: QueueTransaction, *, count: int) -> None:
    before = lock_health(transaction)
    after, change = after_success(before, now=transaction.now, count=count)
    save_health(transaction, after)
    if change is HealthChange.RECOVERED:
        failures = before.consecutive_failures
        transaction.record("health.recovered", consecutive_failures=failures)
        transaction.announce("health.recovered", consecutive_failures=failures)


def note_failures(transaction: QueueTransaction, failures: Iterable[FailureRecord]) -> None:
    after, change = after_failures(lock_health(transaction), failures)
    save_health(transaction, after)
    if change is HealthChange.DEGRADED:
        count = after.consecutive_failures
        transaction.record("health.degraded", consecutive_failures=count)
        transaction.announce("health.degraded", consecutive_failures=count)


def note_crash_loop(transaction: QueueTransaction) -> None:
    before = lock_health(transaction)
    if not before.crash_loop:
        save_health(transaction, replace(before, crash_loop=True))
        transaction.record("health.critical", reason="every run dies")
        transaction.announce("health.critical", reason="every run dies")
