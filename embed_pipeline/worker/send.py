"""One request: may it go, what came back, and what that means for its jobs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from enum import Enum, auto

from embed_pipeline.errors import (
    CriticalError,
    InputRefused,
    InputTooLarge,
    RateLimited,
    TransientError,
)
from embed_pipeline.model.breaker import GRAPH, Breaker, pause_at
from embed_pipeline.model.switch import Switch
from embed_pipeline.model.window import Denied, Grant, Spent
from embed_pipeline.ports.embedding_provider import Embedded
from embed_pipeline.telemetry import emit
from embed_pipeline.worker.call import Call
from embed_pipeline.worker.failures import record_of
from embed_pipeline.worker.holding import Holding
from embed_pipeline.worker.pace import Pace
from embed_pipeline.worker.report import Ending
from embed_pipeline.worker.requests import Request
from embed_pipeline.worker.write import Paid, write_and_complete

PAUSE_WITHOUT_ADVICE = timedelta(seconds=10)
"""After a 429 that does not say how long."""


class Next(Enum):
    GO_ON = auto()
    STOP = auto()


class Sending:
    """Sends the requests of one batch, one after the other."""

    def __init__(self, holding: Holding, pace: Pace) -> None:
        self._holding, self._pace = holding, pace
        self._tools, self._tally = holding.tools, holding.tally

    def send_all(self, requests: Sequence[Request]) -> None:
        """Until all are answered, or something stops the run; the rest stays with the holding."""
        waiting = list(reversed(requests))
        while waiting:
            request = waiting.pop()
            if not self._holding.heartbeat.may_start(request.job_ids):
                self._holding.release(request.job_ids)
                continue
            if self._send(request, waiting) is Next.STOP:
                return

    def _send(self, request: Request, waiting: list[Request]) -> Next:
        switch = self._tools.jobs.switch.read()
        breaker = self._tools.jobs.breakers.read(self._tools.provider.name)
        if not self._may_send(switch, breaker):
            return Next.STOP
        grant = self._take_grant(request, waiting)
        if grant is None:
            return Next.STOP
        call = self._answered(request, breaker, grant)
        if call.error is None:
            return Next.GO_ON
        return self._refused(request, call.error, switch, breaker, waiting)

    def _may_send(self, switch: Switch, breaker: Breaker) -> bool:
        tally, is_probe = self._tally, self._holding.lease.probe
        graph = self._tools.jobs.breakers.read(GRAPH)
        if self._pace.stopped:
            tally.ending = Ending.STOPPED
        elif self._pace.time_is_up:
            tally.ending = Ending.TIME_UP
        elif not switch.is_running:
            tally.ending = Ending.REFUSED
        elif breaker.is_open and not (
            is_probe and breaker.generation == self._holding.lease.breaker_seen
        ):
            tally.ending, tally.back_at = Ending.REFUSED, breaker.until
        elif graph.is_open:  # what cannot be written is not paid for
            tally.ending, tally.back_at = Ending.REFUSED, graph.until
        else:
            return True
        return False

    def _take_grant(self, request: Request, waiting: list[Request]) -> Grant | None:
        limiter = self._tools.limiter
        while True:
            taken = limiter.take(request.cost(limiter.limit))
            if not isinstance(taken, Denied):
                return taken
            if not request.started or self._pace.stopped or self._pace.time_is_up:
                self._tally.ending, self._tally.back_at = Ending.BUDGET_SPENT, taken.retry_at
                emit(
                    "limiter.exhausted",
                    worker_id=self._holding.lease.owner,
                    provider=self._tools.provider.name,
                    until=taken.retry_at,
                )
                return None
            self._release_unstarted(waiting)
            self._pace.wait_towards(taken.retry_at)

    def _release_unstarted(self, waiting: list[Request]) -> None:
        """Others may have the jobs that would only wait with us."""
        unstarted = [request for request in waiting if not request.started]
        self._holding.release([job_id for request in unstarted for job_id in request.job_ids])
        waiting[:] = [request for request in waiting if request.started]

    def _answered(self, request: Request, breaker: Breaker, grant: Grant) -> Call:
        """Send and wait; told to stop meanwhile, wait a little longer and keep what arrives."""
        self._tally.requests += 1
        call = Call(self._tools.provider, request.texts)
        try:
            call.start()
            call.wait()
        except BaseException:
            self._pace.stop()
            emit("run.interrupted", worker_id=self._holding.lease.owner)
            if call.wait(self._tools.plan.grace) and call.answer is not None:
                self._keep(request, call.answer, breaker, grant)
            raise
        if call.answer is not None:
            self._keep(request, call.answer, breaker, grant)
        return call

    def _keep(self, request: Request, answer: Embedded, breaker: Breaker, grant: Grant) -> None:
        self._close(breaker)
        if answer.tokens and answer.tokens < grant.cost.tokens:
            unused = Spent(tokens=grant.cost.tokens - answer.tokens)
            self._tools.limiter.give_back(grant, unused=unused)
        self._tally.tokens += answer.tokens
        self._tally.truncated += len(answer.truncated)
        paid: list[Paid] = [
            (task, answer.vectors[position], position in answer.truncated)
            for position, group in enumerate(request.groups)
            for task in group
        ]
        landed = write_and_complete(self._holding, paid, self._pace)
        repeats = len(paid) - len(request.groups)
        self._tally.reused += min(repeats, landed)
        self._tally.embedded += max(0, landed - repeats)

    def _close(self, breaker: Breaker) -> None:
        if breaker.is_open:
            self._tools.jobs.breakers.close(breaker.name, seen=breaker.generation)

    def _refused(
        self,
        request: Request,
        error: Exception,
        switch: Switch,
        breaker: Breaker,
        waiting: list[Request],
    ) -> Next:
        if isinstance(error, RateLimited | InputRefused | InputTooLarge):
            self._close(breaker)  # an unwelcome answer is an answer
        match error:
            case RateLimited():
                self._tools.limiter.pause(error.retry_after or PAUSE_WITHOUT_ADVICE)
                self._holding.release(request.job_ids)
                self._tally.ending = Ending.BUDGET_SPENT
                self._tally.back_at = self._tools.limiter.allowance().back_at
                return Next.STOP
            case CriticalError():
                failure = record_of(error)
                self._holding.defer(request.jobs, failure)
                self._holding.halt(failure, seen=switch.generation)
                return Next.STOP
            case InputRefused() | InputTooLarge() if not request.travels_alone:
                waiting.extend(reversed(request.halves()))
                return Next.GO_ON
            case InputRefused() | InputTooLarge():
                self._holding.fail(request.jobs, record_of(error))
                return Next.GO_ON
            case _:
                return self._broke(request, error, breaker)

    def _broke(self, request: Request, error: Exception, breaker: Breaker) -> Next:
        """The whole request failed: everybody pauses, and only a lone traveller is charged."""
        failure = record_of(error)
        after = breaker
        if isinstance(error, TransientError):
            after = self._tools.jobs.breakers.trip(
                breaker.name, seen=breaker.generation, error=failure
            )
        if self._holding.lease.probe:
            delay = pause_at(after.level) if after.is_open else timedelta(0)
            self._holding.defer(request.jobs, failure, delay=delay)
        elif request.travels_alone:
            self._holding.fail(request.jobs, failure)
        else:
            self._holding.defer(request.jobs, failure, strike=True)
        self._tally.ending, self._tally.back_at = Ending.REFUSED, after.until
        return Next.STOP
