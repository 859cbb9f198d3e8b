"""Vectors into the graph first, then the jobs are completed: one page, in a thread of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from embed_pipeline.domain.breaker import GRAPH, Breaker, pause_at
from embed_pipeline.domain.embedding import Vector, VectorWrite, WriteReport
from embed_pipeline.domain.entity import Entity
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.domain.lease import Lease, LeaseResult
from embed_pipeline.errors import CriticalError, TransientError
from embed_pipeline.worker.batch import LeasedBatch
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.failures import GONE
from embed_pipeline.worker.graph_trouble import pause_for_graph
from embed_pipeline.worker.prepare import Task, supersede
from embed_pipeline.worker.stop import Deadline


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingWrite:
    """A task and its vector."""

    task: Task
    vector: Vector
    truncated: bool = False
    reused: bool = False
    """Paid for by another who has the same text."""


Page = Sequence[PendingWrite]
"""As many as one transaction takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteResult:
    report: WriteReport = field(default_factory=WriteReport)
    settled: LeaseResult = field(default_factory=LeaseResult)
    changed: Mapping[EntityUid, Entity] = field(default_factory=dict)
    """The entities whose text has moved on, as they are now."""
    trouble: TransientError | CriticalError | None = None
    """Why the graph did not take the page: down for longer than there is time, out of order, or
    without memory for all of it."""


def write_page(
    services: Services, lease: Lease, page: Page, *, seen: Breaker, deadline: Deadline
) -> WriteResult:
    """While the graph is down, paid vectors wait under heartbeat.

    `seen` is the graph's breaker as it was when the batch was read: one read for all its pages.
    """
    try:
        report = _write_patiently(services, page, seen, deadline)
        changed = services.graph.read_entities(report.superseded) if report.superseded else {}
    except (TransientError, CriticalError) as error:
        return WriteResult(trouble=error)
    jobs = {paid.task.entity.uid: paid.task.job.id for paid in page}
    done = services.jobs.complete(lease, [jobs[uid] for uid in report.written])
    return WriteResult(report=report, settled=done, changed=changed)


def settle_page(batch: LeasedBatch, page: Page, written: WriteResult) -> None:
    """Count what landed; fail what is gone, and queue what has changed meanwhile."""
    done, tally = set(written.settled.done), batch.tally
    landed = [paid for paid in page if paid.task.job.id in done]
    tally.reused += sum(paid.reused for paid in landed)
    tally.embedded += sum(not paid.reused for paid in landed)
    batch.mark_done(written.settled)
    if len(written.report.written) == len(page):
        return
    tasks = {paid.task.entity.uid: paid.task for paid in page}
    missed = (*written.report.gone, *written.report.superseded)
    batch.fail([tasks[uid].job for uid in missed if uid not in written.changed], GONE)
    supersede(batch, [Task(job=tasks[uid].job, entity=now) for uid, now in written.changed.items()])


def _write_patiently(
    services: Services, page: Page, breaker: Breaker, deadline: Deadline
) -> WriteReport:
    """Raises when the graph stays down for longer than there is time, or when no pause helps."""
    breakers = services.jobs.breakers
    writes = [_write_of(paid) for paid in page]
    while True:
        try:
            report = services.graph.write_vectors(writes, model=services.model)
        except TransientError as error:
            seen = breaker.generation
            instead = pause_for_graph(services, error, seen=seen, entities=len(page))
            if instead is not None:
                raise instead from error
            breaker = breakers.read(GRAPH)
            pause = pause_at(max(1, breaker.level))
            if not deadline.allows(pause):
                raise
            deadline.wait(pause)
            breaker = breakers.claim_probe(GRAPH) or breakers.read(GRAPH)
        else:
            if breaker.is_open:
                breakers.close(GRAPH, seen=breaker.generation)
            return report


def _write_of(paid: PendingWrite) -> VectorWrite:
    return VectorWrite(entity=paid.task.entity, vector=paid.vector, truncated=paid.truncated)
