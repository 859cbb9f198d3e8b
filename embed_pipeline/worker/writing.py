"""The vectors of a run on their way into the graph, a page at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial

from embed_pipeline.errors import CriticalError, PageTooLarge, TransientError
from embed_pipeline.worker.course import Course
from embed_pipeline.worker.crew import Crew, Errand
from embed_pipeline.worker.failures import record_of
from embed_pipeline.worker.holding import Holding
from embed_pipeline.worker.pace import Pace
from embed_pipeline.worker.tools import Tools
from embed_pipeline.worker.verdicts import judge_graph, judge_too_large
from embed_pipeline.worker.write import Page, Paid, Written, settle_page, write_page


class Writing:
    def __init__(self, tools: Tools, crew: Crew, course: Course, *, pace: Pace) -> None:
        self._tools, self._crew, self._course, self._pace = tools, crew, course, pace
        self._pages: deque[tuple[Holding, Page]] = deque()
        plan = tools.plan
        self._pages_of_a_request = -(-tools.provider.limits.inputs // plan.write_size)
        self._most_pages = plan.ahead * plan.concurrency * self._pages_of_a_request

    @property
    def is_behind(self) -> bool:
        """Whether so much waits to be written that more should not be paid for yet.

        What is asked for already will be waiting soon: memory holds no more than so many pages.
        """
        waiting = len(self._pages) + self._crew.busy(Errand.WRITE)
        coming = self._crew.busy(Errand.REQUEST) * self._pages_of_a_request
        return waiting > 0 and waiting + coming > self._most_pages

    def add(self, holding: Holding, paid: Sequence[Paid]) -> None:
        size = self._tools.plan.write_size
        for start in range(0, len(paid), size):
            self._pages.append((holding, paid[start : start + size]))

    def start(self) -> None:
        while self._pages and self._crew.busy(Errand.WRITE) < self._tools.plan.writers:
            holding, page = self._pages.popleft()
            self._crew.start(
                Errand.WRITE,
                partial(
                    write_page,
                    self._tools,
                    holding.lease,
                    page,
                    seen=holding.graph_seen,
                    pace=self._pace,
                ),
                then=partial(self._wrote, holding, page),
            )

    def _wrote(self, holding: Holding, page: Page, outcome: Future[Written]) -> None:
        written = outcome.result()
        match written.trouble:
            case None:
                settle_page(holding, page, written)
            case PageTooLarge() if len(page) > 1:
                # One by one, so that all land but those that are too large by themselves.
                self._pages.extendleft((holding, [paid]) for paid in page)
            case PageTooLarge() as error:
                judge_too_large(holding, [paid.task.job for paid in page], error)
            case error:
                self._give_up(holding, page, error)

    def _give_up(self, holding: Holding, page: Page, error: TransientError | CriticalError) -> None:
        failure = record_of(error)
        unwritten, self._pages = [(holding, page), *self._pages], deque()
        for owner, failed in unwritten:
            owner.defer([paid.task.job for paid in failed], failure)
        verdict = judge_graph(holding, error)
        self._course.end(verdict.ending, verdict.back_at)
