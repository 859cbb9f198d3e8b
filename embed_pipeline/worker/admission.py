"""May a request go now? The switch, the breakers and the budget have a say, in this order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from embed_pipeline.domain.breaker import GRAPH, Breaker
from embed_pipeline.domain.lease import Lease
from embed_pipeline.domain.switch import Switch
from embed_pipeline.domain.window import Denied, Grant
from embed_pipeline.telemetry import emit
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.packing import Request
from embed_pipeline.worker.report import Ending


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
class Split:
    """The budget has no room for all of it, but for the first of these."""

    parts: Sequence[Request]


def admit(services: Services, request: Request, lease: Lease) -> Admitted | Held | Split:
    switch = services.jobs.switch.read()
    breaker = services.jobs.breakers.read(services.provider.name)
    held = _held_by_state(services, lease, switch, breaker)
    if held is not None:
        return held
    at = services.clock.monotonic()
    taken = services.limiter.take(request.cost(services.limiter.limit))
    if isinstance(taken, Denied):
        return _with_what_is_left(services, request, lease, taken)
    return Admitted(switch=switch, breaker=breaker, grant=taken, at=at)


def _with_what_is_left(
    services: Services, request: Request, lease: Lease, denied: Denied
) -> Split | Held:
    left = services.limiter.allowance()
    if left.back_at is None and left.tokens is not None:
        if parts := request.cut_to(left.tokens):
            return Split(parts=parts)
        # Too few tokens for any of these texts. Everybody is told, who would else see some
        # budget, lease, be denied and give it all back, again and again until it is enough.
        services.limiter.pause(denied.retry_at - services.jobs.now())
    emit(
        "limiter.exhausted",
        worker_id=lease.owner,
        provider=services.provider.name,
        until=denied.retry_at,
    )
    return Held(ending=Ending.BUDGET_SPENT, back_at=denied.retry_at)


def is_outdated(services: Services, admitted: Admitted) -> bool:
    """A grant counts in the bucket in which it was taken: sent later, it would count wrongly."""
    limit = services.limiter.limit
    if limit is None:
        return False
    return services.clock.monotonic() - admitted.at > limit.grant_lasts.total_seconds()


def _held_by_state(
    services: Services, lease: Lease, switch: Switch, breaker: Breaker
) -> Held | None:
    if not switch.is_running:
        return Held(ending=Ending.REFUSED)
    is_probe = lease.probe and breaker.generation == lease.breaker_seen
    if breaker.is_open and not is_probe:
        return Held(ending=Ending.REFUSED, back_at=breaker.until)
    graph = services.jobs.breakers.read(GRAPH)
    if graph.is_open:  # what cannot be written is not paid for
        return Held(ending=Ending.REFUSED, back_at=graph.until)
    return None
