"""What a transition notes of health: the new record, its event and its log line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from embed_pipeline.domain.health import HealthChange, after_failures, after_success
from embed_pipeline.domain.job import FailureRecord
from embed_pipeline.stores.queue.documents import HEALTH
from embed_pipeline.stores.queue.transaction import Transaction


def note_success(transaction: Transaction, *, count: int) -> None:
    before = HEALTH.lock(transaction)
    after, change = after_success(before, now=transaction.now, count=count)
    HEALTH.save(transaction, after)
    if change is HealthChange.RECOVERED:
        failures = before.consecutive_failures
        transaction.record("health.recovered", consecutive_failures=failures)
        transaction.announce("health.recovered", consecutive_failures=failures)


def note_failures(transaction: Transaction, failures: Iterable[FailureRecord]) -> None:
    after, change = after_failures(HEALTH.lock(transaction), failures)
    HEALTH.save(transaction, after)
    if change is HealthChange.DEGRADED:
        count = after.consecutive_failures
        transaction.record("health.degraded", consecutive_failures=count)
        transaction.announce("health.degraded", consecutive_failures=count)


def note_crash_loop(transaction: Transaction) -> None:
    """Recorded once, until something completes."""
    before = HEALTH.lock(transaction)
    if not before.crash_loop:
        HEALTH.save(transaction, replace(before, crash_loop=True))
        transaction.record("health.critical", reason="every run dies")
        transaction.announce("health.critical", reason="every run dies")
