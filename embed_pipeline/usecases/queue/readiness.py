"""Readiness: is a job due, and may it be leased now? Asked before a run is worth its start."""

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
class Readiness:
    """`reason` says why a run would find nothing to do, and until when; None if it would."""

    reason: str | None = None
    due_since: datetime | None = None


def check_readiness(jobs: JobStore, limiter: RateLimiter, *, model: str) -> Readiness:
    """Costs a few index seeks, whatever the size of the queue."""
    now = jobs.now()
    if stopped := stopped_by_hand(jobs):
        return Readiness(reason=stopped.detail)
    due = jobs.next_due(model=model)
    if due is None:
        return Readiness(reason="nothing is pending")
    if due > now:
        return Readiness(reason=f"nothing is due before {_clock_time(due)}")
    if held_up := held_up_by(jobs, limiter, model=model, now=now):
        return Readiness(reason=held_up.detail)
    return Readiness(due_since=due)


def stopped_by_hand(jobs: JobStore) -> Refusal | None:
    """Paused or halted: a person has to resume it."""
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
    """An open breaker or a spent budget: leasing goes on by itself."""
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


def _clock_time(time: datetime) -> str:
    return f"{time:%H:%M:%S} UTC"
