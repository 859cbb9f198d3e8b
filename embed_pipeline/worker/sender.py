"""The requests of a run: those that wait, those under way, and what comes of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from datetime import datetime
from functools import partial

from embed_pipeline.domain.job import JobId
from embed_pipeline.errors import InputRefused, SettingsRefused
from embed_pipeline.ports.embedding_provider import Embedded
from embed_pipeline.telemetry import emit
from embed_pipeline.worker.admission import Admitted, Held, Split, admit, is_outdated
from embed_pipeline.worker.batch import LeasedBatch
from embed_pipeline.worker.budget import record_usage
from embed_pipeline.worker.call import ask
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.course import RunState
from embed_pipeline.worker.outcomes import close_breaker, fail_refused, judge
from embed_pipeline.worker.packing import Request
from embed_pipeline.worker.pool import TaskKind, TaskPool
from embed_pipeline.worker.report import Ending
from embed_pipeline.worker.write import PendingWrite


class Sending:
    """`deliver` takes the vectors that were paid for."""

    def __init__(
        self,
        services: Services,
        pool: TaskPool,
        course: RunState,
        *,
        deliver: Callable[[LeasedBatch, list[PendingWrite]], None],
    ) -> None:
        self._services, self._pool, self._course, self._deliver = services, pool, course, deliver
        self._waiting: deque[tuple[LeasedBatch, Request]] = deque()
        self.back_at: datetime | None = None
        """When the budget that a request waits for is back."""
        self._was_answered = False
        """Whether this run knows that its provider takes what the settings ask of it."""

    @property
    def is_waiting(self) -> bool:
        return bool(self._waiting)

    @property
    def is_held_up(self) -> bool:
        return self.back_at is not None

    @property
    def is_full(self) -> bool:
        return self._pool.busy(TaskKind.REQUEST) >= self._services.run_limits.concurrency

    def add(self, batch: LeasedBatch, requests: Iterable[Request]) -> None:
        self._waiting.extend((batch, request) for request in requests)

    def give_back_unsent(self) -> None:
        """Others may have the jobs that would only wait with us.

        Halves of a request that was sent before wait for the budget; for nothing else.
        """
        waiting, self._waiting = self._waiting, deque()
        unsent: dict[LeasedBatch, list[JobId]] = {}
        for batch, request in waiting:
            if request.started and self._course.waits_for_budget:
                self._waiting.append((batch, request))
            else:
                unsent.setdefault(batch, []).extend(request.job_ids)
        for batch, job_ids in unsent.items():
            batch.release(job_ids)

    def start_next(self) -> None:
        """Send the next request, if it may go."""
        batch, request = self._waiting.popleft()
        if request.refusal is not None and self._was_answered:
            fail_refused(batch, request, request.refusal)
            return
        if not batch.heartbeat.may_start(request.job_ids):
            batch.release(request.job_ids)
            return
        entry = admit(self._services, request, batch.lease)
        if isinstance(entry, Split):
            self._waiting.extendleft((batch, part) for part in reversed(entry.parts))
            return
        if isinstance(entry, Held):
            self._waiting.appendleft((batch, request))
            self._course.end(entry.ending, entry.back_at)
            self.back_at = entry.back_at
            return
        batch.tally.requests += 1
        self._pool.start(
            TaskKind.REQUEST,
            partial(self._ask, request, entry),
            then=partial(self._answered, batch, request, entry),
        )

    def _ask(self, request: Request, admitted: Admitted) -> Embedded | None:
        """None when the grant was too old to be used: nothing was sent."""
        if is_outdated(self._services, admitted):
            return None
        return ask(self._services.provider, request.texts)

    def _answered(
        self,
        batch: LeasedBatch,
        request: Request,
        admitted: Admitted,
        outcome: Future[Embedded | None],
    ) -> None:
        error = outcome.exception()
        if isinstance(error, Exception):
            self._refused(batch, request, admitted, error)
            return
        answer = outcome.result()
        if answer is None:
            batch.tally.requests -= 1
            emit("limiter.grant_outdated", provider=self._services.provider.name)
            self._services.limiter.give_back(admitted.grant)
            self._waiting.appendleft((batch, request))
            return
        self._was_answered = True
        if request.refusal is not None:
            fail_refused(batch, request, request.refusal)
        else:
            # First of all: what is paid for must not be lost to an error of the books.
            self._deliver(batch, _paid(request, answer))
        batch.tally.tokens += answer.tokens
        batch.tally.truncated += sum(each.truncated for each in request.inputs)
        close_breaker(self._services, admitted.breaker)
        record_usage(self._services.limiter, admitted.grant, answer)

    def _refused(
        self, batch: LeasedBatch, request: Request, admitted: Admitted, error: Exception
    ) -> None:
        if self._course.ending is Ending.STOPPED:  # nobody is charged for what was cut short
            batch.release(request.job_ids)
            return
        if isinstance(error, InputRefused) and request.is_one_text and not self._was_answered:
            # Else every job of the queue would fail for a setting that the provider refuses.
            if request.refusal is None:
                close_breaker(self._services, admitted.breaker)
                self._waiting.appendleft((batch, request.doubting(error)))
                return
            message = f"Any text is refused, so the settings are at fault: {error}"
            error = SettingsRefused(message)
        verdict = judge(batch, request, error, admitted)
        self._waiting.extendleft((batch, half) for half in reversed(verdict.again))
        if verdict.ending is not None:
            self._course.end(verdict.ending, verdict.back_at)


def _paid(request: Request, answer: Embedded) -> list[PendingWrite]:
    return [
        PendingWrite(
            task=task,
            vector=answer.vectors[position],
            truncated=parcel.input.truncated,
            reused=task is not parcel.tasks[0],
        )
        for position, parcel in enumerate(request.parcels)
        for task in parcel.tasks
    ]
