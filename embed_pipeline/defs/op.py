"""Ops as all of ours are: values stay in memory, and errors of ours are told in one sentence."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from inspect import isgeneratorfunction
from typing import Any

import dagster as dg

from embed_pipeline.errors import EmbedPipelineError, ErrorCategory
from embed_pipeline.telemetry import emit

IN_MEMORY = dg.Out(io_manager_key="mem_io_manager")

PATIENT = dg.RetryPolicy(max_retries=2, delay=2, backoff=dg.Backoff.EXPONENTIAL)
"""For ops that may be repeated; leasing and embedding never are: the queue is their retry."""

Compute = Callable[..., Any]


def pipeline_op(
    description: str,
    *,
    ins: Mapping[str, dg.In] | None = None,
    out: dg.Out | Mapping[str, dg.Out] = IN_MEMORY,
    retry_policy: dg.RetryPolicy | None = None,
) -> Callable[[Compute], dg.OpDefinition]:
    def decorate(compute: Compute) -> dg.OpDefinition:
        told = _yielding(compute) if isgeneratorfunction(compute) else _returning(compute)
        return dg.op(
            description=description,
            ins=ins,
            out=dict(out) if isinstance(out, Mapping) else out,
            retry_policy=retry_policy,
        )(told)

    return decorate


def _returning(compute: Compute) -> Compute:
    @wraps(compute)
    def told(*args: Any, **kwargs: Any) -> Any:
        with _sentence_told(compute.__name__):
            return compute(*args, **kwargs)

    return told


def _yielding(compute: Compute) -> Compute:
    @wraps(compute)
    def told(*args: Any, **kwargs: Any) -> Iterator[Any]:
        with _sentence_told(compute.__name__):
            yield from compute(*args, **kwargs)

    return told


@contextmanager
def _sentence_told(operation: str) -> Iterator[None]:
    """A stack tells nobody what to do; only what may pass by itself is worth another try."""
    try:
        yield
    except EmbedPipelineError as error:
        emit("op.failed", operation=operation, error=error)
        may_pass = error.category is ErrorCategory.TRANSIENT
        raise dg.Failure(str(error), allow_retries=may_pass) from error
