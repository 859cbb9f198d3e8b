"""What trouble with the graph is: a pause for everybody, a person's work, or a page too large."""

from __future__ import annotations

from embed_pipeline.domain.breaker import GRAPH, is_lasting
from embed_pipeline.errors import (
    CriticalError,
    PageTooLarge,
    StoreBroken,
    StoreFaltered,
    StoreOverloaded,
    TransientError,
)
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.failures import record_of


def pause_for_graph(
    services: Services, error: TransientError, *, seen: int, entities: int = 0
) -> PageTooLarge | StoreBroken | None:
    """Open the graph's breaker, or double its pause; what it is instead where no pause helps.

    `entities` is how many were read or written at once: if they are all that is too much for its
    memory, nobody else has to wait. A graph that breaks at every answer, and not for a moment, is
    `StoreBroken`. The stored breaker knows, because a run may end at the first such answer; a good
    answer closes it, and one that is wrong in another way begins anew.
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
    """One that has no memory for a small write either is overloaded by others."""
    try:
        services.graph.probe()
    except (TransientError, CriticalError):
        return False
    return True
