"""The requests of a run: those that wait, those under way, and what comes of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from datetime import datetime
from functools import partial

from embed_pipeline.errors import InputRefused, SettingsRefused
from embed_pipeline.model.job import JobId
from embed_pipeline.ports.embedding_provider import Embedded
from embed_pipeline.telemetry import emit
from embed_pipeline.worker.budget import keep_books
from embed_pipeline.worker.call import ask
from embed_pipeline.worker.course import Course
from embed_pipeline.worker.crew import Crew, Errand
from embed_pipeline.worker.gate import Admitted, Cut, Held, admit, is_outdated
from embed_pipeline.worker.holding import Holding
from embed_pipeline.worker.report import Ending
from embed_pipeline.worker.requests import Request
from embed_pipeline.worker.tools import Tools
from embed_pipeline.worker.verdicts import close_breaker, fail_refused, judge
from embed_pipeline.worker.write import Paid


class Sending:
    """`deliver` takes the vectors that were paid for."""

    def __init__(
        self,
        tools: Tools,
        crew: Crew,
        course: Course,
        *,
        deliver: Callable[[Holding, list[Paid]], None],
    ) -> None:
        self._tools, self._crew, self._course, self._deliver = tools, crew, course, deliver
        self._waiting: deque[tuple[Holding, Request]] = deque()
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
        return self._crew.busy(Errand.REQUEST) >= self._tools.plan.concurrency

    def add(self, holding: Holding, requests: Iterable[Request]) -> None:
        self._waiting.extend((holding, request) for request in requests)

    def give_back_unsent(self) -> None:
        """Others may have the jobs that would only wait with us.

        Halves of a request that was sent before wait for the budget; for nothing else.
        """
        waiting, self._waiting = self._waiting, deque()
        unsent: dict[Holding, list[JobId]] = {}
        for holding, request in waiting:
            if request.started and self._course.waits_for_budget:
                self._waiting.append((holding, request))
            else:
                unsent.setdefault(holding, []).extend(request.job_ids)
        for holding, job_ids in unsent.items():
            holding.release(job_ids)

    def start_next(self) -> None:
        """Send the next request, if it may go."""
        holding, request = self._waiting.popleft()
        if request.refusal is not None and self._was_answered:
            fail_refused(holding, request, request.refusal)
            return
        if not holding.heartbeat.may_start(request.job_ids):
            holding.release(request.job_ids)
            return
        entry = admit(self._tools, request, holding.lease)
        if isinstance(entry, Cut):
            self._waiting.extendleft((holding, part) for part in reversed(entry.parts))
            return
        if isinstance(entry, Held):
            self._waiting.appendleft((holding, request))
            self._course.end(entry.ending, entry.back_at)
            self.back_at = entry.back_at
            return
        holding.tally.requests += 1
        self._crew.start(
            Errand.REQUEST,
            partial(self._ask, request, entry),
            then=partial(self._answered, holding, request, entry),
        )

    def _ask(self, request: Request, admitted: Admitted) -> Embedded | None:
        """None when the grant was too old to be used: nothing was sent."""
        if is_outdated(self._tools, admitted):
            return None
        return ask(self._tools.provider, request.texts)

    def _answered(
        self,
        holding: Holding,
        request: Request,
        admitted: Admitted,
        outcome: Future[Embedded | None],
    ) -> None:
        error = outcome.exception()
        if isinstance(error, Exception):
            self._refused(holding, request, admitted, error)
            return
        answer = outcome.result()
        if answer is None:
            holding.tally.requests -= 1
            emit("limiter.grant_outdated", provider=self._tools.provider.name)
            self._tools.limiter.give_back(admitted.grant)
            self._waiting.appendleft((holding, request))
            return
        self._was_answered = True
        if request.refusal is not None:
            fail_refused(holding, request, request.refusal)
        else:
            # First of all: what is paid for must not be lost to an error of the books.
            self._deliver(holding, _paid(request, answer))
        holding.tally.tokens += answer.tokens
        holding.tally.truncated += sum(each.truncated for each in request.inputs)
        close_breaker(self._tools, admitted.breaker)
        keep_books(self._tools.limiter, admitted.grant, answer)

    def _refused(
        self, holding: Holding, request: Request, admitted: Admitted, error: Exception
    ) -> None:
        if self._course.ending is Ending.STOPPED:  # nobody is charged for what was cut short
            holding.release(request.job_ids)
            return
        if isinstance(error, InputRefused) and request.is_one_text and not self._was_answered:
            # Else every job of the queue would fail for a setting that the provider refuses.
            if request.refusal is None:
                close_breaker(self._tools, admitted.breaker)
                self._waiting.appendleft((holding, request.doubting(error)))
                return
            message = f"Any text is refused, so the settings are at fault: {error}"
            error = SettingsRefused(message)
        verdict = judge(holding, request, error, admitted)
        self._waiting.extendleft((holding, half) for half in reversed(verdict.again))
        if verdict.ending is not None:
            self._course.end(verdict.ending, verdict.back_at)


def _paid(request: Request, answer: Embedded) -> list[Paid]:
    return [
        Paid(
            task=task,
            vector=answer.vectors[position],
            truncated=parcel.input.truncated,
            reused=task is not parcel.tasks[0],
        )
        for position, parcel in enumerate(request.parcels)
        for task in parcel.tasks
    ]
