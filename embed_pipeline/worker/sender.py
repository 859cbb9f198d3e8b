"""Send requests to the provider: those that wait, those under way, and their answers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from embed_pipeline.domain.job import JobId
from embed_pipeline.errors import InputRefused, InputTooLarge, SettingsRefused
from embed_pipeline.ports.embedding_provider import Embedded
from embed_pipeline.telemetry import emit
from embed_pipeline.telemetry.latency import LatencyKind
from embed_pipeline.worker.admission import Admitted, Split, admit, ask, is_outdated, record_usage
from embed_pipeline.worker.batch import LeasedBatch
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.outcomes import close_breaker, handle_request_error, record_of
from embed_pipeline.worker.packing import Request
from embed_pipeline.worker.pool import TaskKind, TaskPool
from embed_pipeline.worker.stop import RUNNING, RunState, StopReason
from embed_pipeline.worker.writer import PendingWrite, Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class SentRequest:
    batch: LeasedBatch
    request: Request
    admitted: Admitted


class Sender:
    """Hands the vectors of every answer to the writer."""

    def __init__(self, services: Services, pool: TaskPool, writer: Writer) -> None:
        self._services, self._pool, self._writer = services, pool, writer
        self._waiting: deque[tuple[LeasedBatch, Request]] = deque()
        self.back_at: datetime | None = None
        """When the budget that the next request waits for is back."""
        self._was_answered = False
        """Whether the provider has accepted a request of this run, and so its settings."""

    @property
    def is_waiting(self) -> bool:
        return bool(self._waiting)

    def add(self, batch: LeasedBatch, requests: Iterable[Request]) -> None:
        self._waiting.extend((batch, request) for request in requests)

    def start(self, state: RunState) -> RunState:
        """Send what may be sent now, or release it where the run stops."""
        limit = self._services.run_limits.concurrency
        self.back_at = None
        while True:
            if not state.is_running:
                self.release_unsent(state)
            if not self._waiting or self.back_at is not None:
                return state
            if self._pool.busy(TaskKind.REQUEST) >= limit or self._writer.is_behind:
                return state
            state = state.then(self._start_next())

    def release_unsent(self, state: RunState) -> None:
        """Release jobs that would only wait here, so that other workers can take them.

        Parts of a request that was sent before stay while it is only the budget that is missing.
        """
        waiting, self._waiting = self._waiting, deque()
        unsent: dict[LeasedBatch, list[JobId]] = {}
        for batch, request in waiting:
            if request.started and state.waits_for_budget:
                self._waiting.append((batch, request))
            else:
                unsent.setdefault(batch, []).extend(request.job_ids)
        for batch, job_ids in unsent.items():
            batch.release(job_ids)

    def _start_next(self) -> RunState:
        """Send the next request if it is admitted; otherwise say what it waits for."""
        batch, request = self._waiting.popleft()
        if request.refusal is not None and self._was_answered:
            batch.fail(request.jobs, record_of(request.refusal))
            return RUNNING
        if not batch.heartbeat.may_start(request.job_ids):
            batch.release(request.job_ids)
            return RUNNING
        admitted = admit(self._services, request, batch.lease)
        match admitted:
            case Split(parts=parts):
                self._put_first(batch, parts)
                return RUNNING
            case RunState(back_at=back_at):
                self._put_first(batch, [request])
                self.back_at = back_at
                return admitted
            case Admitted():
                batch.report.requests += 1
                self._pool.start(
                    TaskKind.REQUEST,
                    partial(_ask, batch, request, admitted),
                    subject=SentRequest(batch=batch, request=request, admitted=admitted),
                )
                return RUNNING

    def finish(
        self, sent: SentRequest, outcome: Future[Embedded | None], state: RunState
    ) -> RunState:
        """Handle the answer, or the error, of a request."""
        batch, request, admitted = sent.batch, sent.request, sent.admitted
        error = outcome.exception()
        if isinstance(error, Exception):
            return self._handle_error(sent, error, state)
        answer = outcome.result()
        if answer is None:
            batch.report.requests -= 1
            emit("limiter.grant_outdated", provider=self._services.provider.name)
            self._services.limiter.give_back(admitted.grant)
            self._put_first(batch, [request])
            return RUNNING
        self._was_answered = True
        if request.refusal is not None:
            batch.fail(request.jobs, record_of(request.refusal))
        else:
            # Before all bookkeeping: an error of that must not lose what is paid for.
            self._writer.add(batch, _pending_writes(request, answer))
        batch.report.tokens += answer.tokens
        batch.report.truncated += sum(each.truncated for each in request.inputs)
        close_breaker(self._services, admitted.control.provider)
        record_usage(self._services.limiter, admitted.grant, answer)
        return RUNNING

    def _handle_error(self, sent: SentRequest, error: Exception, state: RunState) -> RunState:
        batch, request, admitted = sent.batch, sent.request, sent.admitted
        if state.stop_reason is StopReason.STOPPED:  # cut short by us: no job is charged
            batch.release(request.job_ids)
            return RUNNING
        if isinstance(error, InputRefused | InputTooLarge) and not request.is_one_text:
            close_breaker(self._services, admitted.control.provider)
            self._put_first(batch, request.halves())
            return RUNNING
        if isinstance(error, InputRefused) and not self._was_answered:
            # Is it the text, or a setting? A setting would fail every job of the queue.
            if request.refusal is None:
                close_breaker(self._services, admitted.control.provider)
                self._put_first(batch, [request.with_harmless_text(error)])
                return RUNNING
            error = SettingsRefused(f"Any text is refused, so the settings are at fault: {error}")
        return handle_request_error(batch, request, error, admitted)

    def _put_first(self, batch: LeasedBatch, requests: Sequence[Request]) -> None:
        self._waiting.extendleft((batch, request) for request in reversed(requests))


def _ask(batch: LeasedBatch, request: Request, admitted: Admitted) -> Embedded | None:
    """Runs in a thread of the pool. None: the grant was too old to be used, nothing was sent."""
    services = batch.services
    if is_outdated(services, admitted.at):
        return None
    with batch.report.timing(LatencyKind.REQUEST, services.clock):
        return ask(services, [each.text for each in request.inputs])


def _pending_writes(request: Request, answer: Embedded) -> list[PendingWrite]:
    return [
        PendingWrite(
            task=task,
            vector=answer.vectors[position],
            truncated=text.input.truncated,
            reused=task is not text.tasks[0],
        )
        for position, text in enumerate(request.texts)
        for task in text.tasks
    ]
