"""The worker without Dagster: recover, drain, wait, and again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from embed_pipeline.worker.context import Services
from embed_pipeline.worker.recover import recover_before_work
from embed_pipeline.worker.report import RunReport
from embed_pipeline.worker.run import drain
from embed_pipeline.worker.stop import Deadline, StopReason


def run_until_empty(
    services: Services,
    *,
    owner: str,
    recovery_interval: timedelta | None,
    deadline: Deadline,
    on_batch: Callable[[RunReport], None] = lambda report: None,
) -> RunReport:
    """Work until the queue is empty or a person must act; wait for a spent budget.

    Without a `recovery_interval`, stale jobs are not recovered.
    """
    recovery = _Recovery(services, recovery_interval)
    total = RunReport()

    def after_batch(report: RunReport) -> None:
        recovery.run_if_due()
        on_batch(report)

    while True:
        recovery.run_if_due()
        last = drain(services, owner=owner, deadline=deadline, on_batch=after_batch)
        total = total.plus(last)
        back_at = _back_at(services, last)
        if back_at is None or deadline.stopped or deadline.time_is_up:
            return total
        deadline.wait_towards(back_at)


class _Recovery:
    """Runs at the start, then once per interval."""

    def __init__(self, services: Services, interval: timedelta | None) -> None:
        self._services, self._interval = services, interval
        self._next = services.clock.monotonic()

    def run_if_due(self) -> None:
        if self._interval is None or self._services.clock.monotonic() < self._next:
            return
        recover_before_work(self._services.jobs)
        self._next = self._services.clock.monotonic() + self._interval.total_seconds()


def _back_at(services: Services, report: RunReport) -> datetime | None:
    """When it is worth trying again; None when it is not."""
    if report.stop_reason is StopReason.QUEUE_EMPTY:
        return services.jobs.next_due(model=services.model)
    if report.stop_reason in (StopReason.BUDGET_SPENT, StopReason.REFUSED):
        return report.back_at
    return None
