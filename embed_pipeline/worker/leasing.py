"""Leasing: only what the switch, the breakers and the budget allow."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import datetime

from embed_pipeline.domain.breaker import GRAPH
from embed_pipeline.domain.lease import Lease, Refusal, RefusalReason
from embed_pipeline.errors import (
    CriticalError,
    EmbedPipelineError,
    ModelNotActive,
    RequestError,
    TransientError,
)
from embed_pipeline.telemetry import emit
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.failures import record_of
from embed_pipeline.worker.graph_trouble import pause_for_graph
from embed_pipeline.worker.models import ensure_model


def lease_batch(services: Services, *, owner: str, limit: int | None = None) -> Lease:
    """Lease at most `limit` jobs, and never more than the budget can serve now."""
    wanted = services.run_limits.batch_size if limit is None else limit
    if wanted < 1:
        raise RequestError(f"A lease takes at least one job, {wanted} were asked for.")
    allowance = services.limiter.allowance()
    if allowance.requests is not None:
        wanted = min(wanted, allowance.requests * services.provider.limits.inputs)
    if not wanted:
        lease = _without_budget(services, owner, back_at=allowance.back_at)
    else:
        try_graph(services)
        lease = services.jobs.lease(
            owner=owner, model=services.model, limit=wanted, token=uuid.uuid4().hex
        )
    _tell(lease)
    return lease


def _without_budget(services: Services, owner: str, *, back_at: datetime | None) -> Lease:
    """Nobody has to wait for a budget where there is nothing to do."""
    nothing = Lease(owner=owner, token="", duration=services.run_limits.grace)
    if services.jobs.next_due(model=services.model) is None:
        return nothing
    refusal = Refusal(
        reason=RefusalReason.BUDGET_SPENT,
        detail=f"the budget of {services.provider.name} is used up",
        until=back_at,
    )
    return replace(nothing, refusal=refusal)


def try_graph(services: Services) -> None:
    """Look whether the graph answers and takes this model's vectors.

    Where its breaker is open and the pause over, one cheap write decides. The lease that follows
    refuses by itself while the breaker is open or the queue is halted.
    """
    breakers = services.jobs.breakers
    breaker = breakers.read(GRAPH)
    if breaker.is_open:
        claimed = breakers.claim_probe(GRAPH)
        if claimed is None:
            return
        breaker = claimed
    try:
        if breaker.is_open:
            services.graph.probe()
        ensure_model(services)
    except TransientError as error:
        broken = pause_for_graph(services, error, seen=breaker.generation)
        if broken is not None:
            _halt(services, broken)
    except ModelNotActive:
        raise  # the settings are wrong for this graph, which is no reason to halt everybody
    except CriticalError as error:
        _halt(services, error)
    else:
        if breaker.is_open:
            breakers.close(GRAPH, seen=breaker.generation)


def _halt(services: Services, error: EmbedPipelineError) -> None:
    switch = services.jobs.switch
    switch.halt(record_of(error).message, seen=switch.read().generation)


def _tell(lease: Lease) -> None:
    if lease.refusal is not None:
        emit(
            "lease.refused",
            worker_id=lease.owner,
            reason=f"{lease.refusal.reason}: {lease.refusal.detail}",
            until=lease.refusal.until,
        )
    elif lease.jobs:
        emit("jobs.leased", worker_id=lease.owner, count=len(lease.jobs), probe=lease.probe)
