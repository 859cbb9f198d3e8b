"""May a request go now? The switch, the breakers and the shared budget decide, in this order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from embed_pipeline.domain.control import ControlState, Step
from embed_pipeline.domain.lease import Lease
from embed_pipeline.domain.window import Denied, Grant
from embed_pipeline.errors import RateLimited
from embed_pipeline.ports.embedding_provider import Embedded
from embed_pipeline.ports.rate_limiter import RateLimiter
from embed_pipeline.telemetry import emit
from embed_pipeline.telemetry.spans import INPUT_TOKENS, span
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.packing import Request
from embed_pipeline.worker.stop import RunState, StopReason

PAUSE_WITHOUT_ADVICE = timedelta(seconds=10)
"""After a 429 that does not say how long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """The request may go. Its error counts only for the switch and breaker that were read now."""

    control: ControlState
    grant: Grant
    at: float
    """When its grant was asked for, by the process's own clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """The budget has room for the first of these parts, but not for the whole request."""

    parts: Sequence[Request]


def admit(services: Services, request: Request, lease: Lease) -> Admitted | Split | RunState:
    """A state means that the request has to wait, for the reason and the time that it names."""
    control = services.jobs.control_state(provider=services.provider.name)
    probing = lease.probe and control.provider.generation == lease.breaker_seen
    if refusal := control.refusal(Step.REQUEST, probing=probing):
        return RunState(stop_reason=StopReason.REFUSED, back_at=refusal.until)
    at = services.clock.monotonic()
    taken = services.limiter.take(request.cost(services.limiter.limit))
    if isinstance(taken, Denied):
        return _with_what_is_left(services, request, lease, taken)
    return Admitted(control=control, grant=taken, at=at)


def is_outdated(services: Services, asked_at: float) -> bool:
    """Whether a grant asked for at `asked_at` must be given back: its request would arrive late."""
    limit = services.limiter.limit
    if limit is None:
        return False
    return services.clock.monotonic() - asked_at > limit.grant_lasts.total_seconds()


def ask(services: Services, texts: Sequence[str]) -> Embedded:
    """One request to the provider, with a span that counts the texts but never contains them."""
    provider = services.provider
    with span(
        f"embeddings {provider.model}",
        operation="embeddings",
        provider=provider.name,
        model=provider.model,
        inputs=len(texts),
    ) as current:
        answer = provider.embed(texts)
        current.set_attribute(INPUT_TOKENS, answer.tokens)
        return answer


def record_usage(limiter: RateLimiter, grant: Grant, answer: Embedded) -> None:
    """Replace our estimate by the provider's count, and apply the limits that it reports."""
    counts_tokens = limiter.limit is not None and limiter.limit.tokens is not None
    if counts_tokens and answer.tokens not in (0, grant.cost.tokens):
        limiter.record_actual(grant, tokens=answer.tokens)
    if answer.remaining is not None:
        limiter.apply_provider_limits(answer.remaining)


def pause_all(limiter: RateLimiter, error: RateLimited) -> None:
    """Pause all workers: they share one API key."""
    limiter.pause(error.retry_after or PAUSE_WITHOUT_ADVICE)


def _with_what_is_left(
    services: Services, request: Request, lease: Lease, denied: Denied
) -> Split | RunState:
    left = services.limiter.allowance()
    if left.back_at is None and left.tokens is not None:
        if parts := request.cut_to(left.tokens):
            return Split(parts=parts)
        # Too few tokens for any of these texts. Pause the limiter for all workers. Otherwise each
        # would see budget, lease, be denied and release, in a loop.
        services.limiter.pause(denied.retry_at - services.jobs.now())
    emit(
        "limiter.exhausted",
        worker_id=lease.owner,
        provider=services.provider.name,
        until=denied.retry_at,
    )
    return RunState(stop_reason=StopReason.BUDGET_SPENT, back_at=denied.retry_at)
