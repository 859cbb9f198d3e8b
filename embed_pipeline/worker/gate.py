"""May a request go now? The switch, the breakers and the budget have a say, in this order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from embed_pipeline.model.breaker import GRAPH, Breaker
from embed_pipeline.model.lease import Lease
from embed_pipeline.model.switch import Switch
from embed_pipeline.model.window import Denied, Grant
from embed_pipeline.telemetry import emit
from embed_pipeline.worker.report import Ending
from embed_pipeline.worker.requests import Request
from embed_pipeline.worker.tools import Tools


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """A request may go; what was seen then decides later what its error means."""

    switch: Switch
    breaker: Breaker
    grant: Grant
    at: float
    """When its grant was asked for, by the process's own clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    ending: Ending
    back_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The budget has no room for all of it, but for the first of these."""

    parts: Sequence[Request]


def admit(tools: Tools, request: Request, lease: Lease) -> Admitted | Held | Cut:
    switch = tools.jobs.switch.read()
    breaker = tools.jobs.breakers.read(tools.provider.name)
    held = _held_by_state(tools, lease, switch, breaker)
    if held is not None:
        return held
    at = tools.clock.monotonic()
    taken = tools.limiter.take(request.cost(tools.limiter.limit))
    if isinstance(taken, Denied):
        return _with_what_is_left(tools, request, lease, taken)
    return Admitted(switch=switch, breaker=breaker, grant=taken, at=at)


def _with_what_is_left(tools: Tools, request: Request, lease: Lease, denied: Denied) -> Cut | Held:
    left = tools.limiter.allowance()
    if left.back_at is None and left.tokens is not None:
        if parts := request.cut_to(left.tokens):
            return Cut(parts=parts)
        # Too few tokens for any of these texts. Everybody is told, who would else see some
        # budget, lease, be denied and give it all back, again and again until it is enough.
        tools.limiter.pause(denied.retry_at - tools.jobs.now())
    emit(
        "limiter.exhausted",
        worker_id=lease.owner,
        provider=tools.provider.name,
        until=denied.retry_at,
    )
    return Held(ending=Ending.BUDGET_SPENT, back_at=denied.retry_at)


def is_outdated(tools: Tools, admitted: Admitted) -> bool:
    """A grant counts in the bucket in which it was taken: sent later, it would count wrongly."""
    limit = tools.limiter.limit
    if limit is None:
        return False
    return tools.clock.monotonic() - admitted.at > limit.grant_lasts.total_seconds()


def _held_by_state(tools: Tools, lease: Lease, switch: Switch, breaker: Breaker) -> Held | None:
    if not switch.is_running:
        return Held(ending=Ending.REFUSED)
    is_probe = lease.probe and breaker.generation == lease.breaker_seen
    if breaker.is_open and not is_probe:
        return Held(ending=Ending.REFUSED, back_at=breaker.until)
    graph = tools.jobs.breakers.read(GRAPH)
    if graph.is_open:  # what cannot be written is not paid for
        return Held(ending=Ending.REFUSED, back_at=graph.until)
    return None
