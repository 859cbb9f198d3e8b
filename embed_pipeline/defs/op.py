"""What every op here shares: outputs in memory, concise failures, metadata."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import wraps
from inspect import isgeneratorfunction
from typing import Any

import dagster as dg

from embed_pipeline.errors import EmbedPipelineError, ErrorCategory
from embed_pipeline.ports.clock import SystemClock
from embed_pipeline.telemetry import emit

IN_MEMORY = dg.Out(io_manager_key="mem_io_manager")

RETRY_TWICE = dg.RetryPolicy(max_retries=2, delay=2, backoff=dg.Backoff.EXPONENTIAL)
"""For ops that may be repeated. Leasing and embedding never are: the queue is their retry."""

TRIGGER = "embed_pipeline/trigger"
"""What launched a run: queue, interval or schedule. Runs launched by hand have no such tag."""

MOST_ROWS = 50
"""Rows of a table in the UI; the store has the rest."""

Compute = Callable[..., Any]
Metadata = dict[str, Any]


def pipeline_op(
    description: str,
    *,
    ins: Mapping[str, dg.In] | None = None,
    out: dg.Out | Mapping[str, dg.Out] = IN_MEMORY,
    retry_policy: dg.RetryPolicy | None = None,
) -> Callable[[Compute], dg.OpDefinition]:
    """An op that keeps its outputs in memory and fails with one sentence instead of a stack."""

    def decorate(compute: Compute) -> dg.OpDefinition:
        return dg.op(
            description=description,
            ins=ins,
            out=dict(out) if isinstance(out, Mapping) else out,
            retry_policy=retry_policy,
        )(_with_concise_failures(compute))

    return decorate


def _with_concise_failures(compute: Compute) -> Compute:
    if not isgeneratorfunction(compute):
        return concise_failures(compute.__name__)(compute)

    @wraps(compute)
    def generate(*args: Any, **kwargs: Any) -> Iterator[Any]:
        with concise_failures(compute.__name__):
            yield from compute(*args, **kwargs)

    return generate


@contextmanager
def concise_failures(operation: str) -> Iterator[None]:
    """The log keeps the stack. Only transient errors are worth another try."""
    try:
        yield
    except EmbedPipelineError as error:
        emit("op.failed", operation=operation, error=error)
        may_pass = error.category is ErrorCategory.TRANSIENT
        raise dg.Failure(str(error), allow_retries=may_pass) from error


def in_words(span: timedelta) -> str:
    seconds = max(span.total_seconds(), 0)
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


class Stopwatch:
    """Starts when it is created."""

    def __init__(self) -> None:
        self._started = SystemClock().monotonic()

    def speed(self, count: int) -> Metadata:
        """The seconds since the start, and how many of the counted things were done per second."""
        seconds = SystemClock().monotonic() - self._started
        rate = round(count / seconds, 1) if seconds > 0 else 0.0
        return {"seconds": round(seconds, 3), "per_second": rate}


def table(rows: Sequence[Mapping[str, str | int | float]]) -> dg.TableMetadataValue:
    return dg.MetadataValue.table([dg.TableRecord(dict(row)) for row in rows[:MOST_ROWS]])
