"""A look before a run is worth its seconds: is anything due, and may it be leased now?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from embed_pipeline.domain.breaker import GRAPH
from embed_pipeline.domain.job import provider_of
from embed_pipeline.domain.lease import Refusal, RefusalReason
from embed_pipeline.domain.switch import SwitchState
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.ports.rate_limiter import RateLimiter


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """`reason` says why there is nothing to do, and until when; None when there is."""

    reason: str | None = None
    due_since: datetime | None = None


def look(jobs: JobStore, limiter: RateLimiter, *, model: str) -> Outlook:
    """A few index seeks, whatever the size of the queue."""
    now = jobs.now()
    if stopped := stopped_by_hand(jobs):
        return Outlook(reason=stopped.detail)
    due = jobs.next_due(model=model)
    if due is None:
        return Outlook(reason="nothing is pending")
    if due > now:
        return Outlook(reason=f"nothing is due before {_clock_time(due)}")
    if held_up := held_up_by(jobs, limiter, model=model, now=now):
        return Outlook(reason=held_up.detail)
    return Outlook(due_since=due)


def stopped_by_hand(jobs: JobStore) -> Refusal | None:
    """Paused or halted: it goes on when a person says so."""
    switch = jobs.switch.read()
    if switch.is_running:
        return None
    halted = switch.state is SwitchState.HALTED
    return Refusal(
        reason=RefusalReason.HALTED if halted else RefusalReason.PAUSED,
        detail=f"{switch.state}: {switch.reason}; resume it to go on",
    )


def held_up_by(
    jobs: JobStore, limiter: RateLimiter, *, model: str, now: datetime
) -> Refusal | None:
    """An open breaker or a spent budget: it goes on by itself."""
    for name in (GRAPH, provider_of(model)):
        breaker = jobs.breakers.read(name)
        if breaker.until is not None and breaker.blocks(now):
            back = _clock_time(breaker.until)
            return Refusal(
                reason=RefusalReason.BREAKER_OPEN,
                detail=f"{name} does not answer ({breaker.reason}); next try at {back}",
                until=breaker.until,
            )
    back_at = limiter.allowance().back_at
    if back_at is None:
        return None
    return Refusal(
        reason=RefusalReason.BUDGET_SPENT,
        detail=f"the budget is used up; back at {_clock_time(back_at)}",
        until=back_at,
    )


def _clock_time(moment: datetime) -> str:
    return f"{moment:%H:%M:%S} UTC"
