"""What an error of a request means: for its jobs, for everybody, and for the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from embed_pipeline.domain.breaker import GRAPH, Breaker, pause_at
from embed_pipeline.domain.job import EmbedJob
from embed_pipeline.errors import (
    CriticalError,
    InputRefused,
    InputTooLarge,
    ModelNotActive,
    PageTooLarge,
    RateLimited,
    TransientError,
)
from embed_pipeline.worker.admission import Admitted
from embed_pipeline.worker.batch import LeasedBatch
from embed_pipeline.worker.budget import pause_for
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.failures import record_of
from embed_pipeline.worker.packing import Request
from embed_pipeline.worker.report import Ending


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether the run ends, and which smaller requests try again."""

    ending: Ending | None = None
    back_at: datetime | None = None
    """When it goes on by itself; None where a person has to act."""
    again: tuple[Request, ...] = ()


def judge(batch: LeasedBatch, request: Request, error: Exception, admitted: Admitted) -> Verdict:
    services = batch.services
    if isinstance(error, RateLimited | InputRefused | InputTooLarge):
        close_breaker(services, admitted.breaker)  # an unwelcome answer is an answer
    match error:
        case RateLimited():
            pause_for(services.limiter, error)
            batch.release(request.job_ids)
            # A short pause may be over by now.
            back_at = services.limiter.allowance().back_at or services.jobs.now()
            return Verdict(ending=Ending.BUDGET_SPENT, back_at=back_at)
        case CriticalError():
            failure = record_of(error)
            batch.defer(request.jobs, failure)
            ending = batch.halt(failure, seen=admitted.switch.generation)
            return Verdict(ending=ending, back_at=_after_halt(services, ending))
        case InputRefused() | InputTooLarge() if not request.is_one_text:
            return Verdict(again=request.halves())
        case InputRefused() | InputTooLarge():
            fail_refused(batch, request, error)
            return Verdict()
        case _:
            return _broken(batch, request, error, admitted.breaker)


def fail_refused(
    batch: LeasedBatch, request: Request, refusal: InputRefused | InputTooLarge
) -> None:
    batch.fail(request.jobs, record_of(refusal))


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphVerdict:
    ending: Ending
    back_at: datetime | None = None


def judge_graph(batch: LeasedBatch, error: TransientError | CriticalError) -> GraphVerdict:
    """The graph took or gave nothing: nobody is charged, and nothing more is paid for."""
    services = batch.services
    if isinstance(error, ModelNotActive):
        raise error  # as at leasing: the settings of this run are wrong, not everybody's
    if isinstance(error, CriticalError):
        ending = batch.halt(record_of(error), seen=batch.switch_seen)
        return GraphVerdict(ending=ending, back_at=_after_halt(services, ending))
    breaker = services.jobs.breakers.read(GRAPH)
    return GraphVerdict(ending=Ending.REFUSED, back_at=breaker.until or services.jobs.now())


def judge_too_large(batch: LeasedBatch, jobs: Sequence[EmbedJob], error: PageTooLarge) -> None:
    """The graph goes on with others; as with a request, only a lone traveller is charged."""
    failure = record_of(error)
    if len(jobs) == 1:
        batch.fail(jobs, failure)
    else:
        batch.defer(jobs, failure, strike=True)


def _after_halt(services: Services, ending: Ending) -> datetime | None:
    """None while halted; where somebody had resumed meanwhile, it may go on at once."""
    return None if ending is Ending.HALTED else services.jobs.now()


def close_breaker(services: Services, breaker: Breaker) -> None:
    if breaker.is_open:
        services.jobs.breakers.close(breaker.name, seen=breaker.generation)


def _broken(batch: LeasedBatch, request: Request, error: Exception, breaker: Breaker) -> Verdict:
    """The whole request failed: everybody pauses, and only a lone traveller is charged.

    One that failed beside another which had already opened the breaker is a case of the same
    outage, and not the reason for it: it is not charged either.
    """
    failure, breakers = record_of(error), batch.services.jobs.breakers
    after = breakers.read(breaker.name)
    is_straggler = after.generation != breaker.generation
    is_outage = isinstance(error, TransientError)
    if is_outage:
        after = breakers.trip(breaker.name, seen=breaker.generation, error=failure)
    if batch.lease.probe:
        delay = pause_at(after.level) if after.is_open else timedelta(0)
        batch.defer(request.jobs, failure, delay=delay)
    elif request.travels_alone and not is_straggler:
        batch.fail(request.jobs, failure, is_counted=is_outage)
    else:
        batch.defer(request.jobs, failure, strike=request.is_shared)
    # Closed again by somebody's probe, or never opened: then it may go on at once.
    return Verdict(ending=Ending.REFUSED, back_at=after.until or batch.services.jobs.now())
