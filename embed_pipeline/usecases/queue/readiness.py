"""Readiness: is a job due, and may it be leased now? Asked before a run is worth its start."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from embed_pipeline.domain.control import ControlState, Step
from embed_pipeline.domain.job import provider_of
from embed_pipeline.domain.lease import Refusal, RefusalReason
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.ports.rate_limiter import RateLimiter


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """`reason` says why a run would find nothing to do, and until when; None if it would."""

    reason: str | None = None
    due_since: datetime | None = None


def check_readiness(jobs: JobStore, limiter: RateLimiter, *, model: str) -> Readiness:
    """Costs a few index seeks, whatever the size of the queue."""
    state = jobs.control_state(provider=provider_of(model))
    refusal = find_refusal(state, limiter)
    if refusal is not None and refusal.until is None:
        return Readiness(reason=refusal.detail)
    due = jobs.next_due(model=model)
    if due is None:
        return Readiness(reason="nothing is pending")
    if due > state.now:
        return Readiness(reason=f"nothing is due before {_clock_time(due)}")
    if refusal is not None:
        return Readiness(reason=refusal.detail)
    return Readiness(due_since=due)


def find_refusal(state: ControlState, limiter: RateLimiter) -> Refusal | None:
    """Why a run would lease nothing now; the detail is a sentence for people."""
    refusal = state.refusal(Step.RUN) or _spent_budget(limiter)
    if refusal is None:
        return None
    if refusal.until is None:
        detail = f"{refusal.reason}: {refusal.detail}; resume it to go on"
    else:
        then = "next try" if refusal.reason is RefusalReason.BREAKER_OPEN else "back"
        detail = f"{refusal.detail}; {then} at {_clock_time(refusal.until)}"
    return replace(refusal, detail=detail)


def _spent_budget(limiter: RateLimiter) -> Refusal | None:
    back_at = limiter.allowance().back_at
    if back_at is None:
        return None
    reason = RefusalReason.BUDGET_SPENT
    return Refusal(reason=reason, detail="the budget is used up", until=back_at)


def _clock_time(time: datetime) -> str:
    return f"{time:%H:%M:%S} UTC"
