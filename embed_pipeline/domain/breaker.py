"""The breaker: one pause for all workers while a provider or the graph does not answer.

Generations replace clocks: a request remembers the generation it saw when it was sent, and only a
result that saw the current one counts. So ten requests that fail together open it once, and a
late result from before neither doubles the pause nor closes it. A claim of the probe is no result
and leaves the generation as it is: of several probers the first that has one decides, also where
an answer takes longer than the pause.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

GRAPH = "graph"
"""The name of the graph's breaker; every other name is a provider's."""

FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=1), timedelta(seconds=60)

LASTING = timedelta(seconds=30)
"""Two equal failures so far apart are not explained by a restart of the server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    name: str
    generation: int = 0
    level: int = 0
    """Failed rounds in a row; 0 is closed."""
    until: datetime | None = None
    reason: str | None = None

    @property
    def is_open(self) -> bool:
        return self.level > 0

    def blocks(self, now: datetime) -> bool:
        return self.until is not None and now < self.until


def pause_at(level: int) -> timedelta:
    return min(FIRST_PAUSE * (1 << min(level - 1, 30)), LONGEST_PAUSE)


def is_lasting(breaker: Breaker, *, reason: str) -> bool:
    """Whether the failure before this one was the same, and a long pause lies between them."""
    return breaker.reason == reason and pause_at(breaker.level) >= LASTING


def tripped(breaker: Breaker, *, seen: int, now: datetime, reason: str) -> Breaker:
    """Opened, or its pause doubled; unchanged when the failed request saw an older generation."""
    if seen != breaker.generation:
        return breaker
    level = breaker.level + 1
    return replace(
        breaker,
        generation=breaker.generation + 1,
        level=level,
        until=now + pause_at(level),
        reason=reason,
    )


def probe_claimed(breaker: Breaker, *, now: datetime) -> Breaker | None:
    """The pause re-armed for the one who may try, or None when there is nothing to try yet.

    Re-armed first, so that a prober which dies blocks no other: the next one tries after the pause.
    """
    if not breaker.is_open or breaker.blocks(now):
        return None
    return replace(breaker, until=now + pause_at(breaker.level))


def probe_given_back(breaker: Breaker, *, seen: int, now: datetime) -> Breaker:
    """Open as before, and free to be probed: the one that had claimed the probe sent nothing.

    Unchanged when there was a result since.
    """
    if not breaker.is_open or seen != breaker.generation or not breaker.blocks(now):
        return breaker
    return replace(breaker, until=now)


def closed(breaker: Breaker, *, seen: int) -> Breaker:
    """Closed by an answered request; unchanged when that request saw an older generation."""
    if not breaker.is_open or seen != breaker.generation:
        return breaker
    return Breaker(name=breaker.name, generation=breaker.generation + 1)
