"""The vectors of a run on their way into the graph, a page at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial

from embed_pipeline.errors import CriticalError, PageTooLarge, TransientError
from embed_pipeline.worker.batch import LeasedBatch
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.course import RunState
from embed_pipeline.worker.failures import record_of
from embed_pipeline.worker.outcomes import judge_graph, judge_too_large
from embed_pipeline.worker.pool import TaskKind, TaskPool
from embed_pipeline.worker.stop import Deadline
from embed_pipeline.worker.write import Page, PendingWrite, WriteResult, settle_page, write_page


class Writing:
    def __init__(
        self, services: Services, pool: TaskPool, course: RunState, *, deadline: Deadline
    ) -> None:
        self._services, self._pool, self._course, self._deadline = services, pool, course, deadline
        self._pages: deque[tuple[LeasedBatch, Page]] = deque()
        run_limits = services.run_limits
        self._pages_of_a_request = -(-services.provider.limits.inputs // run_limits.write_size)
        self._most_pages = run_limits.ahead * run_limits.concurrency * self._pages_of_a_request

    @property
    def is_behind(self) -> bool:
        """Whether so much waits to be written that more should not be paid for yet.

        What is asked for already will be waiting soon: memory holds no more than so many pages.
        """
        waiting = len(self._pages) + self._pool.busy(TaskKind.WRITE)
        coming = self._pool.busy(TaskKind.REQUEST) * self._pages_of_a_request
        return waiting > 0 and waiting + coming > self._most_pages

    def add(self, batch: LeasedBatch, paid: Sequence[PendingWrite]) -> None:
        size = self._services.run_limits.write_size
        for start in range(0, len(paid), size):
            self._pages.append((batch, paid[start : start + size]))

    def start(self) -> None:
        while self._pages and self._pool.busy(TaskKind.WRITE) < self._services.run_limits.writers:
            batch, page = self._pages.popleft()
            self._pool.start(
                TaskKind.WRITE,
                partial(
                    write_page,
                    self._services,
                    batch.lease,
                    page,
                    seen=batch.graph_seen,
                    deadline=self._deadline,
                ),
                then=partial(self._wrote, batch, page),
            )

    def _wrote(self, batch: LeasedBatch, page: Page, outcome: Future[WriteResult]) -> None:
        written = outcome.result()
        match written.trouble:
            case None:
                settle_page(batch, page, written)
            case PageTooLarge() if len(page) > 1:
                # One by one, so that all land but those that are too large by themselves.
                self._pages.extendleft((batch, [paid]) for paid in page)
            case PageTooLarge() as error:
                judge_too_large(batch, [paid.task.job for paid in page], error)
            case error:
                self._give_up(batch, page, error)

    def _give_up(
        self, batch: LeasedBatch, page: Page, error: TransientError | CriticalError
    ) -> None:
        failure = record_of(error)
        unwritten, self._pages = [(batch, page), *self._pages], deque()
        for owner, failed in unwritten:
            owner.defer([paid.task.job for paid in failed], failure)
        verdict = judge_graph(batch, error)
        self._course.end(verdict.ending, verdict.back_at)
