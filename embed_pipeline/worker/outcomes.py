"""What an error means: for its jobs, for all workers, and for the run."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from embed_pipeline.domain.breaker import GRAPH, Breaker, is_lasting, pause_at
from embed_pipeline.domain.control import SwitchState
from embed_pipeline.domain.job import ENTITY_GONE, EmbedJob, FailureRecord, JobId
from embed_pipeline.errors import (
    CollectionMismatch,
    CriticalError,
    EmbedPipelineError,
    EntityGone,
    ErrorCategory,
    InputRefused,
    InputTooLarge,
    ModelNotActive,
    PageTooLarge,
    RateLimited,
    StoreBroken,
    StoreFaltered,
    StoreOverloaded,
    TransientError,
)
from embed_pipeline.telemetry import redact
from embed_pipeline.worker.admission import Admitted, pause_all
from embed_pipeline.worker.batch import LeasedBatch
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.packing import Request
from embed_pipeline.worker.stop import RUNNING, RunState, StopReason

LONGEST_MESSAGE, LONGEST_STACK = 1_000, 8_000


def entity_gone() -> FailureRecord:
    """With the stack of the caller, who found out."""
    gone = record_of(EntityGone("The entity was deleted, or is no longer valid."))
    return replace(gone, fail_code=ENTITY_GONE)


def record_of(error: BaseException) -> FailureRecord:
    """What a job stores of an error: redacted and shortened.

    An error that is not classified is TRANSIENT: a bug must not fail jobs at once. One that was
    not raised has the stack of the call.
    """
    stack = "".join(traceback.format_exception(error))
    if error.__traceback__ is None:
        stack = "".join(traceback.format_stack()) + stack
    return FailureRecord(
        category=(
            error.category if isinstance(error, EmbedPipelineError) else ErrorCategory.TRANSIENT
        ),
        error_type=type(error).__name__,
        message=redact(str(error) or type(error).__name__)[:LONGEST_MESSAGE],
        stack=redact(stack)[-LONGEST_STACK:],
    )


# -- errors of a request ---------------------------------------------------------------------


def handle_request_error(
    batch: LeasedBatch, request: Request, error: Exception, admitted: Admitted
) -> RunState:
    """A refused request holds one text here: the sender splits larger ones before."""
    services = batch.services
    if is_answer(error):
        close_breaker(services, admitted.control.provider)
    match error:
        case RateLimited():
            pause_all(services.limiter, error)
            batch.release(request.job_ids)
            # A short pause may be over by now.
            back_at = services.limiter.allowance().back_at or services.jobs.now()
            return RunState(stop_reason=StopReason.BUDGET_SPENT, back_at=back_at)
        case CriticalError():
            failure = record_of(error)
            batch.defer(request.jobs, failure)
            seen = admitted.control.switch.generation
            return _halt(batch, failure, seen=seen, job_ids=request.job_ids)
        case InputRefused() | InputTooLarge():
            batch.fail(request.jobs, record_of(error))
            return RUNNING
        case _:
            return _handle_outage(batch, request, error, admitted.control.provider)


def is_answer(error: Exception) -> bool:
    """Whether the provider is reachable after all: it answered, though not with vectors."""
    return isinstance(error, RateLimited | InputRefused | InputTooLarge)


def close_breaker(services: Services, breaker: Breaker) -> None:
    if breaker.is_open:
        services.jobs.breakers.close(breaker.name, seen=breaker.generation)


def _handle_outage(
    batch: LeasedBatch, request: Request, error: Exception, breaker: Breaker
) -> RunState:
    """The whole request failed: all workers pause, and an attempt is charged to a lone job only.

    A request that failed after another one had opened the breaker belongs to the same outage and
    is not its cause: its jobs are not charged either.
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
    elif request.is_one_job and not is_straggler:
        batch.fail(request.jobs, failure, is_counted=is_outage)
    else:
        batch.defer(request.jobs, failure, strike=request.is_shared)
    # The breaker may be closed: never opened, or closed again by the probe of another worker.
    back_at = after.until or batch.services.jobs.now()
    return RunState(stop_reason=StopReason.REFUSED, back_at=back_at)


def _halt(
    batch: LeasedBatch, failure: FailureRecord, *, seen: int, job_ids: Sequence[JobId] = ()
) -> RunState:
    """Stop all leasing until a person resumes it, unless one has since `seen` was read.

    Without a request of its own, the error was met by every job of the batch.
    """
    jobs, owner = batch.services.jobs, batch.lease.owner
    met_by = job_ids or batch.lease.job_ids
    halted = jobs.switch.halt(failure.message, seen=seen, owner=owner, job_ids=met_by)
    if halted.state is not SwitchState.HALTED:
        return RunState(stop_reason=StopReason.REFUSED, back_at=jobs.now())
    batch.report.critical = failure.message
    return RunState(stop_reason=StopReason.HALTED)


# -- errors of the graph ---------------------------------------------------------------------


def handle_graph_error(batch: LeasedBatch, error: TransientError | CriticalError) -> RunState:
    """The graph could not be read or written: no job is charged, and nothing more is paid for."""
    if isinstance(error, ModelNotActive | CollectionMismatch):
        raise error  # the settings of this run are wrong, which is no reason to stop all workers
    if isinstance(error, CriticalError):
        return _halt(batch, record_of(error), seen=batch.control.switch.generation)
    jobs = batch.services.jobs
    back_at = jobs.breakers.read(GRAPH).until or jobs.now()
    return RunState(stop_reason=StopReason.REFUSED, back_at=back_at)


def handle_too_large(batch: LeasedBatch, jobs: Sequence[EmbedJob], error: PageTooLarge) -> None:
    """The graph goes on with other jobs; as with requests, only a lone job is charged."""
    failure = record_of(error)
    if len(jobs) == 1:
        batch.fail(jobs, failure)
    else:
        batch.defer(jobs, failure, strike=True)


def pause_for_graph(
    services: Services, error: TransientError, *, seen: int, entities: int = 0
) -> PageTooLarge | StoreBroken | None:
    """Open the graph's breaker, or double its pause; a returned error says that no pause helps.

    `entities` is how many were read or written at once. If the graph takes other writes, these
    entities are too much for its memory (`PageTooLarge`), and other workers need not wait.
    A graph that fails in the same way again after a long pause is `StoreBroken`: the stored
    breaker tells, because a run may end at the first failure.
    """
    if isinstance(error, StoreOverloaded) and entities and _takes_other_writes(services):
        asked = "this entity" if entities == 1 else f"a page of {entities} entities"
        return PageTooLarge(f"The graph takes other writes, but has no memory for {asked}. {error}")
    breakers, failure = services.jobs.breakers, record_of(error)
    before = breakers.read(GRAPH)
    after = breakers.trip(GRAPH, seen=seen, error=failure)
    counts = after.generation != before.generation
    if counts and isinstance(error, StoreFaltered) and is_lasting(before, reason=failure.message):
        return StoreBroken(f"{failure.message.rstrip('.')}, again and again.")
    return None


def _takes_other_writes(services: Services) -> bool:
    """A graph without memory for a small write either is overloaded by others."""
    try:
        services.graph.probe()
    except (TransientError, CriticalError):
        return False
    return True
