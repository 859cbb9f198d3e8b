"""One run as a pipeline: leases ahead, requests and writes under way, all of it bounded.

One thread decides and counts; leasing, requests and writes run beside it (see `crew`). Neither
the provider nor a database waits for the other, and memory does not grow with the backlog.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial

from embed_pipeline.errors import PageTooLarge
from embed_pipeline.model.lease import Lease, RefusalReason
from embed_pipeline.telemetry import emit
from embed_pipeline.worker.course import Course
from embed_pipeline.worker.crew import Crew, Errand
from embed_pipeline.worker.holding import Holding
from embed_pipeline.worker.intake import Intake, take_in
from embed_pipeline.worker.pace import SHORTEST_WAIT, Pace
from embed_pipeline.worker.prepare import settle_without_request
from embed_pipeline.worker.report import Ending, Tally
from embed_pipeline.worker.sending import Sending
from embed_pipeline.worker.tools import Tools
from embed_pipeline.worker.verdicts import judge_graph, judge_too_large
from embed_pipeline.worker.write import Paid
from embed_pipeline.worker.writing import Writing


class Pipeline:
    def __init__(
        self,
        tools: Tools,
        *,
        owner: str,
        limit: int | None,
        pace: Pace,
        on_batch: Callable[[Tally], None],
    ) -> None:
        self._tools, self._owner, self._limit = tools, owner, limit
        self._pace, self._on_batch = pace, on_batch
        self._tally, self._crew, self._course = Tally(), Crew(), Course()
        self._writing = Writing(tools, self._crew, self._course, pace=pace)
        self._sending = Sending(tools, self._crew, self._course, deliver=self._writing.add)
        self._batches: list[Holding] = []
        self._is_dry = False
        """Whether the last lease found nothing, and no batch has ended since."""
        self._must_be_empty = False
        """Whether the next lease is of jobs that travel without others."""

    def run(self, first: Lease | None) -> Tally:
        begun = self._tools.clock.monotonic()
        try:
            if first is not None:
                self._start_intake(first)
            while self._start_what_is_possible():
                self._wait()
            self._close_all()
        except BaseException as reason:
            self._wind_down(interrupted=not isinstance(reason, Exception))
            raise
        finally:
            self._crew.dismiss()
            self._tally.seconds = self._tools.clock.monotonic() - begun
            self._tally.ending = self._course.ending or Ending.QUEUE_EMPTY
            self._tally.back_at = self._course.back_at
        return self._tally

    def _start_what_is_possible(self) -> bool:
        """False when there is nothing left to wait for."""
        self._look_at_the_time()
        self._writing.start()
        self._send()
        self._close_settled()
        self._lease_ahead()
        return self._sending.is_waiting or not self._crew.is_idle

    def _send(self) -> None:
        sending = self._sending
        sending.back_at = None
        while True:
            if self._course.is_over:
                sending.give_back_unsent()
            if not sending.is_waiting or sending.is_held_up:
                return
            if sending.is_full or self._writing.is_behind:
                return
            sending.start_next()

    def _wait(self) -> None:
        if self._crew.is_idle:
            assert self._sending.back_at is not None, "a request waits for nothing but the budget"
            self._pace.wait_towards(self._sending.back_at)
        else:
            # Never for ever: Python misses a signal that comes as a thread is about to block.
            self._crew.handle_finished(timeout=SHORTEST_WAIT.total_seconds())

    def _look_at_the_time(self) -> None:
        if self._pace.stopped:
            self._course.end(Ending.STOPPED)
        elif self._pace.time_is_up:
            self._course.end(Ending.TIME_UP)

    # -- batches ----------------------------------------------------------------------------

    def _lease_ahead(self) -> None:
        if self._course.is_over or self._is_dry or self._crew.busy(Errand.LEASE):
            return
        if self._batches and not self._may_hold_another():
            return
        self._start_intake(None)

    def _may_hold_another(self) -> bool:
        if self._sending.is_waiting or self._writing.is_behind:
            return False
        if self._must_be_empty or any(batch.travels_small for batch in self._batches):
            return False
        return len(self._batches) < self._tools.plan.most_batches

    def _start_intake(self, lease: Lease | None) -> None:
        self._must_be_empty = False
        self._crew.start(
            Errand.LEASE,
            partial(take_in, self._tools, owner=self._owner, limit=self._limit, lease=lease),
            then=self._taken_in,
        )

    def _taken_in(self, outcome: Future[Intake]) -> None:
        intake = outcome.result()
        refusal, holding = intake.lease.refusal, intake.holding
        if refusal is not None:
            spent = refusal.reason is RefusalReason.BUDGET_SPENT
            self._course.end(Ending.BUDGET_SPENT if spent else Ending.REFUSED, refusal.until)
        elif holding is None:
            self._is_dry = True
        elif self._course.is_over or (self._batches and holding.travels_small):
            # A suspect takes nobody with it: it is leased again when we hold nothing else.
            self._must_be_empty = True
            self._close(holding)
        else:
            self._batches.append(holding)
            self._begin(holding, intake)

    def _begin(self, holding: Holding, intake: Intake) -> None:
        if isinstance(intake.trouble, PageTooLarge):
            judge_too_large(holding, holding.lease.jobs, intake.trouble)
            return
        if intake.trouble is not None:
            holding.release(holding.rest)
            verdict = judge_graph(holding, intake.trouble)
            self._course.end(verdict.ending, verdict.back_at)
            return
        settle_without_request(holding, intake.found)
        reused = [
            Paid(task=task, vector=stored.vector, truncated=stored.truncated, reused=True)
            for task, stored in intake.found.reusable
        ]
        self._writing.add(holding, reused)
        self._sending.add(holding, intake.requests)

    def _close_settled(self) -> None:
        for holding in [batch for batch in self._batches if batch.is_settled]:
            self._batches.remove(holding)
            self._close(holding)
            self._is_dry = False

    def _close_all(self) -> None:
        """Whatever nobody has settled: its heartbeat would keep it as long as the process lives."""
        while self._batches:
            self._close(self._batches.pop())

    def _close(self, holding: Holding) -> None:
        try:
            holding.close()
        finally:
            self._tally.add(holding.tally)
        self._on_batch(self._tally)

    # -- the end ----------------------------------------------------------------------------

    def _wind_down(self, *, interrupted: bool) -> None:
        """Keep what arrives within the grace, give back the rest.

        The error that ended the run matters more than one in here: what cannot be given back now
        is recovered when its lease ends.
        """
        self._pace.stop()
        if interrupted:
            emit("run.interrupted", worker_id=self._owner)
        self._course.end(Ending.STOPPED)
        clock = self._tools.clock
        deadline = clock.monotonic() + self._tools.plan.grace.total_seconds()
        with suppress(Exception):
            self._sending.give_back_unsent()
        with suppress(Exception):
            self._writing.start()
        while not self._crew.is_idle:
            with suppress(Exception):
                if not self._crew.handle_finished(timeout=max(0.0, deadline - clock.monotonic())):
                    break
            with suppress(Exception):
                self._writing.start()
        self._crew.abandon(Errand.LEASE, late=_give_back)
        is_answering = True
        for holding in self._batches:
            if not is_answering:  # one that is down takes seconds to say so, for every batch
                holding.let_go()
                continue
            try:
                self._close(holding)
            except Exception:
                is_answering = False


def _give_back(outcome: Future[Intake]) -> None:
    """A lease that came too late: nobody would embed it, and its heartbeat would keep it."""
    with suppress(Exception):
        holding = outcome.result().holding
        if holding is not None:
            holding.close()
