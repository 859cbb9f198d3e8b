"""Lease a batch: only what the switch, the breakers and the budget allow."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import datetime

from embed_pipeline.domain.breaker import GRAPH
from embed_pipeline.domain.embedding import ModelRecord, ModelState
from embed_pipeline.domain.lease import Lease, Refusal, RefusalReason
from embed_pipeline.errors import (
    CollectionMismatch,
    CriticalError,
    EmbedPipelineError,
    ModelNotActive,
    RequestError,
    TransientError,
)
from embed_pipeline.telemetry import emit
from embed_pipeline.telemetry.spans import SCOPE, span
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.outcomes import pause_for_graph, record_of


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
        _check_graph(services)
        with span("lease", model=services.model, worker=owner, limit=wanted) as current:
            lease = services.jobs.lease(
                owner=owner, model=services.model, limit=wanted, token=uuid.uuid4().hex
            )
            current.set_attribute(f"{SCOPE}.jobs", len(lease.jobs))
    _log(lease)
    return lease


def _check_graph(services: Services) -> None:
    """Check that the graph answers and accepts vectors of the configured model.

    If its breaker is open and the pause is over, one cheap write decides. A failure is only
    stored: the lease that follows is refused while the breaker is open or the queue halted.
    """
    breakers = services.jobs.breakers
    control = services.jobs.control_state(provider=services.provider.name)
    breaker, resumed = control.graph, control.switch.generation
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
            _halt(services, broken, seen=resumed)
    except (ModelNotActive, CollectionMismatch):
        raise  # the settings of this run are wrong, which is no reason to stop all workers
    except CriticalError as error:
        _halt(services, error, seen=resumed)
    else:
        if breaker.is_open:
            breakers.close(GRAPH, seen=breaker.generation)


def ensure_model(services: Services) -> ModelRecord:
    """The record of the configured model. The first model of a graph registers itself.

    Any other has to be started by a person: a run never starts a model.
    """
    record = services.graph.register_first_model(
        services.model, dimensions=services.provider.dimensions
    )
    if record is not None and record.takes_vectors:
        return record
    active = [found.model for found in services.graph.models() if found.state is ModelState.ACTIVE]
    raise ModelNotActive(
        f"The graph is embedded with {', '.join(active) or 'no active model'}, the settings say "
        f"{services.model}: set EMBEDDING_PROVIDER, EMBEDDING_MODEL and EMBEDDING_DIMENSIONS back, "
        "or change the graph's model by hand (docs/operations.md, Changing the model)."
    )


def _without_budget(services: Services, owner: str, *, back_at: datetime | None) -> Lease:
    """Refuse the lease, unless nothing is pending: an empty queue needs no budget."""
    nothing = Lease(owner=owner, token="", duration=services.run_limits.grace)
    if services.jobs.next_due(model=services.model) is None:
        return nothing
    refusal = Refusal(
        reason=RefusalReason.BUDGET_SPENT,
        detail=f"the budget of {services.provider.name} is used up",
        until=back_at,
    )
    return replace(nothing, refusal=refusal)


def _halt(services: Services, error: EmbedPipelineError, *, seen: int) -> None:
    """Stop all leasing until a person resumes it, unless one has since `seen` was read."""
    services.jobs.switch.halt(record_of(error).message, seen=seen)


def _log(lease: Lease) -> None:
    if lease.refusal is not None:
        emit(
            "lease.refused",
            worker_id=lease.owner,
            reason=f"{lease.refusal.reason}: {lease.refusal.detail}",
            until=lease.refusal.until,
        )
    elif lease.jobs:
        emit("jobs.leased", worker_id=lease.owner, count=len(lease.jobs), probe=lease.probe)
