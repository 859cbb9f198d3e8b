"""Leasing: only what the switch, the breakers and the budget allow."""

from __future__ import annotations

import uuid

from embed_pipeline.errors import TransientError
from embed_pipeline.model.breaker import GRAPH, Breaker
from embed_pipeline.model.lease import Lease, Refusal, RefusalReason
from embed_pipeline.telemetry import emit
from embed_pipeline.worker.failures import record_of
from embed_pipeline.worker.models import ensure_model
from embed_pipeline.worker.tools import Tools


def lease_batch(tools: Tools, *, owner: str, limit: int | None = None) -> Lease:
    """Lease at most `limit` jobs, and never more than the budget can serve now."""
    wanted = limit or tools.plan.batch_size
    allowance = tools.limiter.allowance()
    if allowance.requests is not None:
        wanted = min(wanted, allowance.requests * tools.provider.max_inputs)
    if wanted <= 0:
        refusal = Refusal(
            reason=RefusalReason.BUDGET_SPENT,
            detail=f"the budget of {tools.provider.name} is used up",
            until=allowance.back_at,
        )
        lease = Lease(owner=owner, token="", duration=tools.plan.grace, refusal=refusal)
    else:
        try_graph(tools)
        ensure_model(tools)
        lease = tools.jobs.lease(
            owner=owner, model=tools.model, limit=wanted, token=uuid.uuid4().hex
        )
    _tell(lease)
    return lease


def try_graph(tools: Tools) -> None:
    """Where the graph's breaker is open and its pause over: one cheap write decides.

    The lease that follows refuses by itself while the breaker is still open.
    """
    if not tools.jobs.breakers.read(GRAPH).is_open:
        return
    claimed = tools.jobs.breakers.claim_probe(GRAPH)
    if claimed is None:
        return
    try:
        tools.graph.probe()
    except TransientError as error:
        trip(tools, GRAPH, seen=claimed.generation, error=error)
    else:
        tools.jobs.breakers.close(GRAPH, seen=claimed.generation)


def trip(tools: Tools, name: str, *, seen: int, error: BaseException) -> Breaker:
    return tools.jobs.breakers.trip(name, seen=seen, error=record_of(error))


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
