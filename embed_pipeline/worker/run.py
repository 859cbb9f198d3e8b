"""One run of the worker, and in it the life of a batch:

1. lease     take due jobs, as many as switch, breakers and budget allow        (leasing)
2. read      read their entities, sort the jobs, finish those without a request (intake)
3. pack      pack the distinct texts of the others into requests                (packing)
4. admit     check switch, breakers and budget again, before each request       (admission)
5. ask       send it to the provider                                            (sender)
6. write     write the vectors, then complete their jobs, page by page          (writer)
7. close     release what is left, stop the heartbeat, report                   (batch)

One thread decides and counts: the one that calls `drain`. Leasing and reading, requests, and
writes block, so they are tasks for the threads of the pool. Several batches are under way at once,
and the next one is leased while others are embedded. How many is bounded: batches in here,
requests by the sender, pages by the writer. What an error means is decided in `outcomes`.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial

from embed_pipeline.domain.lease import Lease, RefusalReason
from embed_pipeline.errors import PageTooLarge
from embed_pipeline.telemetry import emit
from embed_pipeline.worker.batch import LeasedBatch
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.intake import Intake, finish_without_request, take_in
from embed_pipeline.worker.outcomes import handle_graph_error, handle_too_large
from embed_pipeline.worker.pool import TaskKind, TaskPool
from embed_pipeline.worker.report import RunReport
from embed_pipeline.worker.sender import Sender
from embed_pipeline.worker.stop import RUNNING, SHORTEST_WAIT, Deadline, RunState, StopReason
from embed_pipeline.worker.writer import Writer


def drain(
    services: Services,
    *,
    owner: str,
    first: Lease | None = None,
    limit: int | None = None,
    deadline: Deadline | None = None,
    on_batch: Callable[[RunReport], None] = lambda report: None,
) -> RunReport:
    """Batch after batch until the queue is empty or something stops the run.

    `first` is a lease taken before; `limit` bounds each batch.
    """
    deadline = deadline or Deadline(services.clock, limit=services.run_limits.drain_for)
    run = _Run(services, owner=owner, limit=limit, deadline=deadline, on_batch=on_batch)
    gc.freeze()  # or the collector would scan all imported modules again every few batches
    try:
        return run.run(first)
    finally:
        gc.unfreeze()


class _Run:
    def __init__(
        self,
        services: Services,
        *,
        owner: str,
        limit: int | None,
        deadline: Deadline,
        on_batch: Callable[[RunReport], None],
    ) -> None:
        self._services, self._owner, self._limit = services, owner, limit
        self._deadline, self._on_batch = deadline, on_batch
        self._state, self._report, self._pool = RUNNING, RunReport(), TaskPool()
        self._writer = Writer(services, self._pool, deadline=deadline)
        self._sender = Sender(services, self._pool, self._writer)
        self._batches: list[LeasedBatch] = []
        self._queue_is_empty = False
        """Whether the last lease found nothing, and no batch has ended since."""
        self._must_be_alone = False
        """Whether the next lease is of jobs that may not be held together with others."""

    def run(self, first: Lease | None) -> RunReport:
        started = self._services.clock.monotonic()
        try:
            if first is not None:
                self._start_intake(first)
            while self._start_tasks():
                self._wait()
            self._close_all()
        except BaseException as error:
            self._wind_down(interrupted=not isinstance(error, Exception))
            raise
        finally:
            self._pool.shutdown()
            self._report.seconds = self._services.clock.monotonic() - started
            self._report.stop_reason = self._state.stop_reason or StopReason.QUEUE_EMPTY
            self._report.back_at = self._state.back_at
        return self._report

    def _start_tasks(self) -> bool:
        """Start what may start now; False when there is nothing left to wait for."""
        self._stop_if(self._deadline.state)
        self._writer.start()  # what is paid for comes first
        self._state = self._sender.start(self._state)
        self._close_done()
        self._lease_ahead()
        return self._sender.is_waiting or not self._pool.is_idle

    def _wait(self) -> None:
        if self._pool.is_idle:
            assert self._sender.back_at is not None, "a request waits for nothing but the budget"
            self._deadline.wait_towards(self._sender.back_at)
        else:
            # Never without a timeout: Python misses a signal that arrives just before a block.
            self._handle_finished(timeout=SHORTEST_WAIT.total_seconds())

    def _handle_finished(self, *, timeout: float) -> bool:
        """Handle the results of finished tasks; False when none finished in time."""
        any_finished = False
        for kind, subject, outcome in self._pool.finished(timeout=timeout):
            any_finished = True
            match kind:
                case TaskKind.LEASE:
                    self._stop_if(self._begin(outcome.result()))
                case TaskKind.REQUEST:
                    self._stop_if(self._sender.finish(subject, outcome, self._state))
                case TaskKind.WRITE:
                    self._stop_if(self._writer.finish(subject, outcome))
        return any_finished

    def _stop_if(self, state: RunState) -> None:
        self._state = self._state.then(state)

    # -- steps 1 to 3: lease, read, pack ----------------------------------------------------

    def _lease_ahead(self) -> None:
        if not self._state.is_running or self._queue_is_empty or self._pool.busy(TaskKind.LEASE):
            return
        if not self._batches or self._may_hold_another():
            self._start_intake(None)

    def _may_hold_another(self) -> bool:
        if self._sender.is_waiting or self._writer.is_behind:
            return False
        if self._must_be_alone or any(batch.is_isolated for batch in self._batches):
            return False
        return len(self._batches) < self._services.run_limits.most_batches

    def _start_intake(self, lease: Lease | None) -> None:
        self._must_be_alone = False
        self._pool.start(
            TaskKind.LEASE,
            partial(take_in, self._services, owner=self._owner, limit=self._limit, lease=lease),
        )

    def _begin(self, intake: Intake) -> RunState:
        refusal, batch = intake.lease.refusal, intake.batch
        if refusal is not None:
            spent = refusal.reason is RefusalReason.BUDGET_SPENT
            reason = StopReason.BUDGET_SPENT if spent else StopReason.REFUSED
            return RunState(stop_reason=reason, back_at=refusal.until)
        if batch is None:
            self._queue_is_empty = True
            return RUNNING
        if not self._state.is_running or (self._batches and batch.is_isolated):
            # An isolated batch is leased again when this run holds nothing else.
            self._must_be_alone = True
            self._close(batch)
            return RUNNING
        self._batches.append(batch)
        if isinstance(intake.error, PageTooLarge):
            handle_too_large(batch, batch.lease.jobs, intake.error)
            return RUNNING
        if intake.error is not None:
            batch.release(batch.open_job_ids)
            return handle_graph_error(batch, intake.error)
        finish_without_request(batch, intake.jobs)
        self._writer.add_reused(batch, intake.jobs.reusable)
        self._sender.add(batch, intake.requests)
        return RUNNING

    # -- step 7: close ----------------------------------------------------------------------

    def _close_done(self) -> None:
        for batch in [batch for batch in self._batches if batch.is_done]:
            self._batches.remove(batch)
            self._close(batch)
            self._queue_is_empty = False

    def _close_all(self) -> None:
        """Otherwise a heartbeat would extend unfinished jobs for as long as the process lives."""
        while self._batches:
            self._close(self._batches.pop())

    def _close(self, batch: LeasedBatch) -> None:
        try:
            batch.close()
        finally:
            self._report.add(batch.report)
        self._on_batch(self._report)

    # -- an error or an interrupt -----------------------------------------------------------

    def _wind_down(self, *, interrupted: bool) -> None:
        """Keep what arrives within the grace period, release the rest.

        Errors in here are suppressed, because the one that ended the run matters more. Jobs that
        cannot be released now are recovered when their lease expires.
        """
        self._deadline.stop()
        if interrupted:
            emit("run.interrupted", worker_id=self._owner)
        self._stop_if(self._deadline.state)
        clock = self._services.clock
        ends = clock.monotonic() + self._services.run_limits.grace.total_seconds()
        with suppress(Exception):
            self._sender.release_unsent(self._state)
        with suppress(Exception):
            self._writer.start()
        while not self._pool.is_idle:
            with suppress(Exception):
                if not self._handle_finished(timeout=max(0.0, ends - clock.monotonic())):
                    break
            with suppress(Exception):
                self._writer.start()
        self._pool.abandon(TaskKind.LEASE, late=_close_late)
        is_answering = True
        for batch in self._batches:
            if not is_answering:  # a queue that is down takes seconds to say so, for every batch
                batch.let_go()
                continue
            try:
                self._close(batch)
            except Exception:
                is_answering = False


def _close_late(outcome: Future[Intake]) -> None:
    """A lease that came after the end of the run: without this its heartbeat would keep it."""
    with suppress(Exception):
        batch = outcome.result().batch
        if batch is not None:
            batch.close()
