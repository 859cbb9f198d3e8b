"""The worker without Dagster: recover at the start and every interval, drain, wait, again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from embed_pipeline.worker.context import Services
from embed_pipeline.worker.drain import drain
from embed_pipeline.worker.recover import recover_before_work
from embed_pipeline.worker.report import Ending, Tally
from embed_pipeline.worker.stop import Deadline


def run_until_empty(
    services: Services,
    *,
    owner: str,
    recovery_interval: timedelta | None,
    deadline: Deadline,
    on_batch: Callable[[Tally], None] = lambda tally: None,
) -> Tally:
    """Until the queue is empty or somebody must act; a spent budget is waited for.

    `recovery_interval` None means that nothing is recovered by itself.
    """
    recovery = _Recovery(services, recovery_interval)
    total = Tally()

    def after_batch(tally: Tally) -> None:
        recovery.run_if_due()
        on_batch(tally)

    while True:
        recovery.run_if_due()
        round_ = drain(services, owner=owner, deadline=deadline, on_batch=after_batch)
        total = total.plus(round_)
        back_at = _back_at(services, round_)
        if back_at is None or deadline.stopped or deadline.time_is_up:
            return total
        deadline.wait_towards(back_at)


class _Recovery:
    def __init__(self, services: Services, interval: timedelta | None) -> None:
        self._services, self._interval = services, interval
        self._next = services.clock.monotonic()

    def run_if_due(self) -> None:
        if self._interval is None or self._services.clock.monotonic() < self._next:
            return
        recover_before_work(self._services.jobs)
        self._next = self._services.clock.monotonic() + self._interval.total_seconds()


def _back_at(services: Services, tally: Tally) -> datetime | None:
    """When it is worth trying again; None when it is not."""
    if tally.ending is Ending.QUEUE_EMPTY:
        return services.jobs.next_due(model=services.model)
    if tally.ending in (Ending.BUDGET_SPENT, Ending.REFUSED):
        return tally.back_at
    return None
