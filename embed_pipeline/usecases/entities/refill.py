"""Refill: whether discovery has to fill the queue now, and how far."""

from __future__ import annotations

from dataclasses import dataclass

from embed_pipeline.domain.partition import PartitionCounts
from embed_pipeline.worker.context import Services


@dataclass(frozen=True, slots=True, kw_only=True)
class Refill:
    """`reason` says why nothing is to be queued now; None if something is."""

    reason: str | None = None
    unqueued: int = 0
    """Entities without a vector that have no job, by counts."""
    marked: int = 0
    most_jobs: int = 0
    """How many jobs fill the queue; marked entities are queued in any case."""


def check_refill(services: Services) -> Refill:
    """Costs two counts while nothing is missing; otherwise at most as much as the queue's depth.

    Nothing is queued while the queue is stopped. Marked entities are never held back. The others
    wait until less than half of the depth is pending. Failed jobs that wait for a person do not
    stop it.
    """
    switch = services.jobs.switch.read()
    if not switch.is_running:
        return Refill(reason=f"the queue is {switch.state}: {switch.reason}")
    services.graph.mark_changed()
    counts = services.graph.counts(model=services.model)
    if not counts.missing and not counts.marked:
        return Refill(reason="no entity lacks a vector")
    depth = services.run_limits.queue_depth
    live = services.jobs.count_live(model=services.model, limit=depth)
    unqueued = count_unqueued(services, counts)
    room = max(depth - live.pending, 0)
    if counts.marked:
        return Refill(unqueued=unqueued, marked=counts.marked, most_jobs=room + counts.marked)
    if not unqueued:
        return Refill(reason=f"all {counts.missing} entities without a vector have a job")
    if live.pending > depth // 2:
        pending = f"{'at least ' if live.pending == depth else ''}{live.pending}"
        return Refill(reason=f"the queue is filled: {pending} jobs are pending")
    return Refill(unqueued=unqueued, most_jobs=room)


def count_unqueued(services: Services, counts: PartitionCounts) -> int:
    """Entities without a vector for which there is neither a live nor a parked job.

    Counts cannot tell which entity a job belongs to: jobs of entities that have a vector hide as
    many without one, until these jobs have ended.
    """
    rest = counts.missing
    if rest:
        live = services.jobs.count_live(model=services.model, limit=rest)
        rest -= live.pending + live.processing
    if rest > 0:
        rest -= services.jobs.history.count_parked(limit=rest)
    return max(rest, 0)
