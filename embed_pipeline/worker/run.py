"""One run as a pipeline: leases ahead, requests and writes under way, all of it bounded.

One thread decides and counts; leasing, requests and writes run beside it (see `crew`). Neither
the provider nor a database waits for the other, and memory does not grow with the backlog.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial

from embed_pipeline.domain.lease import Lease, RefusalReason
from embed_pipeline.errors import PageTooLarge
from embed_pipeline.telemetry import emit
from embed_pipeline.worker.batch import LeasedBatch
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.course import RunState
from embed_pipeline.worker.intake import Intake, take_in
from embed_pipeline.worker.outcomes import judge_graph, judge_too_large
from embed_pipeline.worker.pool import TaskKind, TaskPool
from embed_pipeline.worker.prepare import settle_without_request
from embed_pipeline.worker.report import Ending, Tally
from embed_pipeline.worker.sender import Sending
from embed_pipeline.worker.stop import SHORTEST_WAIT, Deadline
from embed_pipeline.worker.write import PendingWrite
from embed_pipeline.worker.writer import Writing


class Pipeline:
    def __init__(
        self,
        services: Services,
        *,
        owner: str,
        limit: int | None,
        deadline: Deadline,
        on_batch: Callable[[Tally], None],
    ) -> None:
        self._services, self._owner, self._limit = services, owner, limit
        self._deadline, self._on_batch = deadline, on_batch
        self._tally, self._pool, self._course = Tally(), TaskPool(), RunState()
        self._writing = Writing(services, self._pool, self._course, deadline=deadline)
        self._sending = Sending(services, self._pool, self._course, deliver=self._writing.add)
        self._batches: list[LeasedBatch] = []
        self._is_dry = False
        """Whether the last lease found nothing, and no batch has ended since."""
        self._must_be_empty = False
        """Whether the next lease is of jobs that travel without others."""

    def run(self, first: Lease | None) -> Tally:
        begun = self._services.clock.monotonic()
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
            self._pool.shutdown()
            self._tally.seconds = self._services.clock.monotonic() - begun
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
        return self._sending.is_waiting or not self._pool.is_idle

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
        if self._pool.is_idle:
            assert self._sending.back_at is not None, "a request waits for nothing but the budget"
            self._deadline.wait_towards(self._sending.back_at)
        else:
            # Never for ever: Python misses a signal that comes as a thread is about to block.
            self._pool.handle_finished(timeout=SHORTEST_WAIT.total_seconds())

    def _look_at_the_time(self) -> None:
        if self._deadline.stopped:
            self._course.end(Ending.STOPPED)
        elif self._deadline.time_is_up:
            self._course.end(Ending.TIME_UP)

    # -- batches ----------------------------------------------------------------------------

    def _lease_ahead(self) -> None:
        if self._course.is_over or self._is_dry or self._pool.busy(TaskKind.LEASE):
            return
        if self._batches and not self._may_hold_another():
            return
        self._start_intake(None)

    def _may_hold_another(self) -> bool:
        if self._sending.is_waiting or self._writing.is_behind:
            return False
        if self._must_be_empty or any(batch.is_isolated for batch in self._batches):
            return False
        return len(self._batches) < self._services.run_limits.most_batches

    def _start_intake(self, lease: Lease | None) -> None:
        self._must_be_empty = False
        self._pool.start(
            TaskKind.LEASE,
            partial(take_in, self._services, owner=self._owner, limit=self._limit, lease=lease),
            then=self._taken_in,
        )

    def _taken_in(self, outcome: Future[Intake]) -> None:
        intake = outcome.result()
        refusal, batch = intake.lease.refusal, intake.batch
        if refusal is not None:
            spent = refusal.reason is RefusalReason.BUDGET_SPENT
            self._course.end(Ending.BUDGET_SPENT if spent else Ending.REFUSED, refusal.until)
        elif batch is None:
            self._is_dry = True
        elif self._course.is_over or (self._batches and batch.is_isolated):
            # A suspect takes nobody with it: it is leased again when we hold nothing else.
            self._must_be_empty = True
            self._close(batch)
        else:
            self._batches.append(batch)
            self._begin(batch, intake)

    def _begin(self, batch: LeasedBatch, intake: Intake) -> None:
        if isinstance(intake.trouble, PageTooLarge):
            judge_too_large(batch, batch.lease.jobs, intake.trouble)
            return
        if intake.trouble is not None:
            batch.release(batch.rest)
            verdict = judge_graph(batch, intake.trouble)
            self._course.end(verdict.ending, verdict.back_at)
            return
        settle_without_request(batch, intake.found)
        reused = [
            PendingWrite(task=task, vector=stored.vector, truncated=stored.truncated, reused=True)
            for task, stored in intake.found.reusable
        ]
        self._writing.add(batch, reused)
        self._sending.add(batch, intake.requests)

    def _close_settled(self) -> None:
        for batch in [batch for batch in self._batches if batch.is_settled]:
            self._batches.remove(batch)
            self._close(batch)
            self._is_dry = False

    def _close_all(self) -> None:
        """Whatever nobody has settled: its heartbeat would keep it as long as the process lives."""
        while self._batches:
            self._close(self._batches.pop())

    def _close(self, batch: LeasedBatch) -> None:
        try:
            batch.close()
        finally:
            self._tally.add(batch.tally)
        self._on_batch(self._tally)

    # -- the end ----------------------------------------------------------------------------

    def _wind_down(self, *, interrupted: bool) -> None:
        """Keep what arrives within the grace, give back the rest.

        The error that ended the run matters more than one in here: what cannot be given back now
        is recovered when its lease ends.
        """
        self._deadline.stop()
        if interrupted:
            emit("run.interrupted", worker_id=self._owner)
        self._course.end(Ending.STOPPED)
        clock = self._services.clock
        deadline = clock.monotonic() + self._services.run_limits.grace.total_seconds()
        with suppress(Exception):
            self._sending.give_back_unsent()
        with suppress(Exception):
            self._writing.start()
        while not self._pool.is_idle:
            with suppress(Exception):
                if not self._pool.handle_finished(timeout=max(0.0, deadline - clock.monotonic())):
                    break
            with suppress(Exception):
                self._writing.start()
        self._pool.abandon(TaskKind.LEASE, late=_give_back)
        is_answering = True
        for batch in self._batches:
            if not is_answering:  # one that is down takes seconds to say so, for every batch
                batch.let_go()
                continue
            try:
                self._close(batch)
            except Exception:
                is_answering = False


def _give_back(outcome: Future[Intake]) -> None:
    """A lease that came too late: nobody would embed it, and its heartbeat would keep it."""
    with suppress(Exception):
        batch = outcome.result().batch
        if batch is not None:
            batch.close()
