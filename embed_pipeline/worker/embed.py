"""Embed a leased batch: settle what needs no request, send the rest, give back what is left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from embed_pipeline.errors import CriticalError, EmbedPipelineError, TransientError
from embed_pipeline.model.breaker import GRAPH
from embed_pipeline.model.lease import Lease
from embed_pipeline.telemetry import emit
from embed_pipeline.worker.failures import record_of
from embed_pipeline.worker.heartbeat import Heartbeat
from embed_pipeline.worker.holding import Holding
from embed_pipeline.worker.pace import Pace
from embed_pipeline.worker.prepare import Sorted, settle_without_request, sort_jobs
from embed_pipeline.worker.report import Ending, Tally
from embed_pipeline.worker.requests import pack
from embed_pipeline.worker.send import Sending
from embed_pipeline.worker.tools import Tools
from embed_pipeline.worker.write import write_and_complete


def embed_batch(tools: Tools, lease: Lease, *, pace: Pace, tally: Tally) -> None:
    """Whatever ends it, no job stays with us: done, failed, or given back."""
    begun, before = tools.clock.monotonic(), replace(tally)
    tally.leased += len(lease.jobs)
    heartbeat = Heartbeat(
        tools.jobs, lease, interval=tools.plan.heartbeat_interval, clock=tools.clock
    )
    try:
        with heartbeat:
            holding = Holding(tools, lease, heartbeat, tally)
            with _rest_released(holding):
                _embed(holding, pace)
    finally:
        tally.seconds += tools.clock.monotonic() - begun
        _measure(tools, lease, tally.since(before))


def _embed(holding: Holding, pace: Pace) -> None:
    tools, tally = holding.tools, holding.tally
    switch = tools.jobs.switch.read()
    try:
        found = _read_graph(holding)
        if found is None:
            return
        settle_without_request(holding, found)
        reused = [(task, vector, False) for task, vector in found.reusable]
        tally.reused += write_and_complete(holding, reused, pace)
        requests = pack(
            found.fresh, max_inputs=tools.provider.max_inputs, limit=tools.limiter.limit
        )
        Sending(holding, pace).send_all(list(requests))
    except CriticalError as error:
        # Where the queue itself is broken this fails too, and the run ends with its sentence.
        holding.halt(record_of(error), seen=switch.generation)


def _read_graph(holding: Holding) -> Sorted | None:
    """None when the graph cannot be read; nobody is charged for that."""
    breakers, tally = holding.tools.jobs.breakers, holding.tally
    breaker = breakers.read(GRAPH)
    try:
        return sort_jobs(holding)
    except TransientError as error:
        tripped = breakers.trip(GRAPH, seen=breaker.generation, error=record_of(error))
        tally.ending, tally.back_at = Ending.REFUSED, tripped.until
        return None


def _measure(tools: Tools, lease: Lease, batch: Tally) -> None:
    # The counts are not worth an error that hides why the batch ended.
    with suppress(EmbedPipelineError):
        tools.jobs.counters.add(batch.counters())
    emit("batch.measured", worker_id=lease.owner, model=tools.model, **batch.facts())


@contextmanager
def _rest_released(holding: Holding) -> Iterator[None]:
    try:
        yield
    except BaseException:
        # The error that ended the batch matters more than one of giving back:
        # what cannot be released now is recovered when its lease ends.
        with suppress(EmbedPipelineError):
            holding.release(holding.rest)
        raise
    holding.release(holding.rest)
