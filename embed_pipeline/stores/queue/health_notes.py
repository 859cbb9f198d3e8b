"""What every backend notes of health inside a transition: the new record, its event and its log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from embed_pipeline.domain.health import HealthChange, HealthRecord, after_failures, after_success
from embed_pipeline.domain.job import FailureRecord, JobId


class Ledger(Protocol):
    """A running transaction, as far as these notes are concerned."""

    @property
    def now(self) -> datetime: ...

    def record(
        self,
        kind: str,
        *,
        owner: str | None = None,
        reason: str | None = None,
        job_ids: Sequence[JobId] = (),
        **facts: object,
    ) -> None: ...

    def announce(self, event: str, **facts: object) -> None: ...


def succeeded(ledger: Ledger, before: HealthRecord, *, count: int) -> HealthRecord:
    after, change = after_success(before, now=ledger.now, count=count)
    if change is HealthChange.RECOVERED:
        failures = before.consecutive_failures
        ledger.record("health.recovered", consecutive_failures=failures)
        ledger.announce("health.recovered", consecutive_failures=failures)
    return after


def failed(ledger: Ledger, before: HealthRecord, failures: Iterable[FailureRecord]) -> HealthRecord:
    after, change = after_failures(before, failures)
    if change is HealthChange.DEGRADED:
        count = after.consecutive_failures
        ledger.record("health.degraded", consecutive_failures=count)
        ledger.announce("health.degraded", consecutive_failures=count)
    return after


def crash_looped(ledger: Ledger, before: HealthRecord) -> HealthRecord:
    """Told once, until something completes."""
    if not before.crash_loop:
        ledger.record("health.critical", reason="every run dies")
        ledger.announce("health.critical", reason="every run dies")
    return replace(before, crash_loop=True)
