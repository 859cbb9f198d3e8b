"""Histograms of durations, kept as counters: they add up over processes and outlive each of them.

A histogram is a counter per bucket and one of the sum, so that an observation is an addition like
any other, in the transaction that counts anyway.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

PREFIX = "latency:"
"""What the names of these counters begin with: `latency:kind:bound:model`."""

_SUM = "sum_us"


class LatencyKind(StrEnum):
    REQUEST = "provider_request"
    JOB = "job"
    WRITE = "vector_write"
    SEARCH = "search"


_CALLS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_WAITS = (0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 21600.0, 86400.0)

BOUNDS: Mapping[LatencyKind, tuple[float, ...]] = {
    LatencyKind.REQUEST: _CALLS,
    LatencyKind.JOB: _WAITS,
    LatencyKind.WRITE: _CALLS,
    LatencyKind.SEARCH: _CALLS,
}
"""The upper bounds of the buckets in seconds; one more bucket has no bound.

They are fixed: counters of other bounds that a queue has stored would be left out.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    kind: LatencyKind
    model: str
    counts: tuple[int, ...]
    """One per bucket, the one without a bound last; not cumulative."""
    seconds: float
    """The sum of all observations."""


def as_counters(kind: LatencyKind, model: str, durations: Iterable[float]) -> dict[str, int]:
    """What to add to the counters for these durations in seconds; a negative one counts as 0."""
    seconds = [max(duration, 0.0) for duration in durations]
    bounds = BOUNDS[kind]
    amounts = Counter(_name(kind, bisect_left(bounds, each), model) for each in seconds)
    if seconds:
        amounts[f"{PREFIX}{kind}:{_SUM}:{model}"] = round(sum(seconds) * 1_000_000)
    return dict(amounts)


def histograms_of(counters: Mapping[str, int], *, model: str) -> list[Histogram]:
    """All histograms of these counters, and one of each kind for `model`, empty or not."""
    models = {model} | {name.split(":", 3)[3] for name in counters if is_latency(name)}
    return [
        Histogram(
            kind=kind,
            model=each,
            counts=tuple(
                counters.get(_name(kind, position, each), 0)
                for position in range(len(BOUNDS[kind]) + 1)
            ),
            seconds=counters.get(f"{PREFIX}{kind}:{_SUM}:{each}", 0) / 1_000_000,
        )
        for each in sorted(models)
        for kind in LatencyKind
    ]


def is_latency(counter: str) -> bool:
    return counter.startswith(PREFIX)


def _name(kind: LatencyKind, position: int, model: str) -> str:
    bounds = BOUNDS[kind]
    bound = f"{bounds[position]:g}" if position < len(bounds) else "inf"
    return f"{PREFIX}{kind}:{bound}:{model}"
