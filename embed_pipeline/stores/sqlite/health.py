"""Health in the queue's file: updated inside the transitions that it is about."""

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
from embed_pipeline.stores.sqlite.queue import QueueFile, QueueTransaction
from embed_pipeline.stores.sqlite.shared_state import (
    all_breakers,
    read_health,
    read_switch,
    save_health,
)


class SqliteHealth(Health):
    def __init__(self, queue: QueueFile) -> None:
        self._queue = queue

    def report(self) -> HealthReport:
        with self._queue.reading() as look:
            return report(read_health(look), switch=read_switch(look), breakers=all_breakers(look))


def note_success(transaction: QueueTransaction, *, count: int) -> None:
    before = read_health(transaction)
    after, change = after_success(before, now=transaction.now, count=count)
    save_health(transaction, after)
    if change is HealthChange.RECOVERED:
        failures = before.consecutive_failures
        transaction.record("health.recovered", consecutive_failures=failures)
        transaction.announce("health.recovered", consecutive_failures=failures)


def note_failures(transaction: QueueTransaction, failures: Iterable[FailureRecord]) -> None:
    after, change = after_failures(read_health(transaction), failures)
    save_health(transaction, after)
    if change is HealthChange.DEGRADED:
        count = after.consecutive_failures
        transaction.record("health.degraded", consecutive_failures=count)
        transaction.announce("health.degraded", consecutive_failures=count)


def note_crash_loop(transaction: QueueTransaction) -> None:
    before = read_health(transaction)
    if not before.crash_loop:
        save_health(transaction, replace(before, crash_loop=True))
        transaction.record("health.critical", reason="every run dies")
        transaction.announce("health.critical", reason="every run dies")
