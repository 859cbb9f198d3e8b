"""Write vectors into the graph, then complete their jobs, a page per transaction."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial

from embed_pipeline.domain.breaker import GRAPH, pause_at
from embed_pipeline.domain.embedding import StoredVector, Vector, VectorWrite, WriteReport
from embed_pipeline.domain.entity import Entity
from embed_pipeline.domain.job import EmbedJob, EntityUid
from embed_pipeline.domain.lease import LeaseResult
from embed_pipeline.errors import CriticalError, PageTooLarge, TransientError
from embed_pipeline.telemetry.latency import LatencyKind
from embed_pipeline.telemetry.spans import span
from embed_pipeline.worker.batch import LeasedBatch, Task
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.intake import supersede
from embed_pipeline.worker.outcomes import (
    entity_gone,
    handle_graph_error,
    handle_too_large,
    pause_for_graph,
    record_of,
)
from embed_pipeline.worker.pool import TaskKind, TaskPool
from embed_pipeline.worker.stop import RUNNING, Deadline, RunState


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingWrite:
    """A task and its vector."""

    task: Task
    vector: Vector
    truncated: bool = False
    reused: bool = False
    """Whether it was paid for by another job with the same text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """As many vectors of one batch as one transaction takes."""

    batch: LeasedBatch
    writes: Sequence[PendingWrite]

    @property
    def jobs(self) -> list[EmbedJob]:
        return [write.task.job for write in self.writes]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteResult:
    """What became of a page: written, or not because of `error`."""

    report: WriteReport = field(default_factory=WriteReport)
    completed: LeaseResult = field(default_factory=LeaseResult)
    changed: Mapping[EntityUid, Entity] = field(default_factory=dict)
    """Entities whose text has changed meanwhile, as they are now."""
    error: TransientError | CriticalError | None = None
    """The graph stayed down for longer than there was time, needs a person, or has no memory
    for the page."""


class Writer:
    """The pages of a run that wait to be written, and those under way."""

    def __init__(self, services: Services, pool: TaskPool, *, deadline: Deadline) -> None:
        self._services, self._pool, self._deadline = services, pool, deadline
        self._pages: deque[Page] = deque()
        run_limits = services.run_limits
        self._pages_of_a_request = -(-services.provider.limits.inputs // run_limits.write_size)
        self._most_pages = run_limits.ahead * run_limits.concurrency * self._pages_of_a_request

    @property
    def is_behind(self) -> bool:
        """Whether so many pages wait that no further request should be paid for yet.

        The answers of requests under way count too: this bounds the memory of a run.
        """
        waiting = len(self._pages) + self._pool.busy(TaskKind.WRITE)
        coming = self._pool.busy(TaskKind.REQUEST) * self._pages_of_a_request
        return waiting > 0 and waiting + coming > self._most_pages

    def add(self, batch: LeasedBatch, writes: Sequence[PendingWrite]) -> None:
        size = self._services.run_limits.write_size
        for start in range(0, len(writes), size):
            self._pages.append(Page(batch=batch, writes=writes[start : start + size]))

    def add_reused(self, batch: LeasedBatch, vectors: Sequence[tuple[Task, StoredVector]]) -> None:
        """Vectors that the graph has already, for another entity with the same text."""
        self.add(
            batch,
            [
                PendingWrite(task=task, vector=each.vector, truncated=each.truncated, reused=True)
                for task, each in vectors
            ],
        )

    def start(self) -> None:
        while self._pages and self._pool.busy(TaskKind.WRITE) < self._services.run_limits.writers:
            page = self._pages.popleft()
            work = partial(_write_page, self._services, page, self._deadline)
            self._pool.start(TaskKind.WRITE, work, subject=page)

    def finish(self, page: Page, outcome: Future[WriteResult]) -> RunState:
        """Handle the result of a page."""
        result = outcome.result()
        match result.error:
            case None:
                _finish_page(page, result)
            case PageTooLarge() if len(page.writes) > 1:
                # One by one, so that only those are left that are too large by themselves.
                self._pages.extendleft(replace(page, writes=[write]) for write in page.writes)
            case PageTooLarge() as error:
                handle_too_large(page.batch, page.jobs, error)
            case error:
                return self._give_up(page, error)
        return RUNNING

    def _give_up(self, page: Page, error: TransientError | CriticalError) -> RunState:
        """Nothing more can be written: defer the jobs of all pages."""
        failure = record_of(error)
        unwritten, self._pages = [page, *self._pages], deque()
        for each in unwritten:
            each.batch.defer(each.jobs, failure)
        return handle_graph_error(page.batch, error)


def _write_page(services: Services, page: Page, deadline: Deadline) -> WriteResult:
    """Runs in a thread of the pool: the vectors first, then the jobs."""
    try:
        report = _write_vectors(services, page, deadline)
        changed = services.graph.read_entities(report.superseded) if report.superseded else {}
    except (TransientError, CriticalError) as error:
        return WriteResult(error=error)
    jobs = {write.task.entity.uid: write.task.job.id for write in page.writes}
    completed = services.jobs.complete(page.batch.lease, [jobs[uid] for uid in report.written])
    return WriteResult(report=report, completed=completed, changed=changed)


def _write_vectors(services: Services, page: Page, deadline: Deadline) -> WriteReport:
    """While the graph is down, paid vectors wait under heartbeat.

    Raises if it stays down for longer than there is time, or if no pause helps. All pages of a
    batch begin with the breaker as it was when the batch was read.
    """
    breakers, breaker = services.jobs.breakers, page.batch.control.graph
    writes = [
        VectorWrite(entity=write.task.entity, vector=write.vector, truncated=write.truncated)
        for write in page.writes
    ]
    while True:
        try:
            with (
                page.batch.report.timing(LatencyKind.WRITE, services.clock),
                span("write", model=services.model, vectors=len(writes)),
            ):
                report = services.graph.write_vectors(writes, model=services.model)
        except TransientError as error:
            seen = breaker.generation
            instead = pause_for_graph(services, error, seen=seen, entities=len(writes))
            if instead is not None:
                raise instead from error
            pause = pause_at(max(1, breakers.read(GRAPH).level))
            if not deadline.allows(pause):
                raise
            deadline.wait(pause)
            breaker = breakers.claim_probe(GRAPH) or breakers.read(GRAPH)
        else:
            if breaker.is_open:
                breakers.close(GRAPH, seen=breaker.generation)
            return report


def _finish_page(page: Page, result: WriteResult) -> None:
    """Count the completed jobs; fail those of deleted entities, requeue those of changed texts."""
    batch, done = page.batch, set(result.completed.done)
    landed = [write for write in page.writes if write.task.job.id in done]
    batch.report.reused += sum(write.reused for write in landed)
    batch.report.embedded += sum(not write.reused for write in landed)
    batch.mark_done(result.completed)
    if len(result.report.written) == len(page.writes):
        return
    jobs = {write.task.entity.uid: write.task.job for write in page.writes}
    missed = (*result.report.gone, *result.report.superseded)
    batch.fail([jobs[uid] for uid in missed if uid not in result.changed], entity_gone())
    supersede(batch, [Task(job=jobs[uid], entity=now) for uid, now in result.changed.items()])
