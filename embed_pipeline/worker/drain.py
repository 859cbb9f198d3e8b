"""One run: batch after batch, until something ends it."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from embed_pipeline.model.lease import Lease
from embed_pipeline.worker.pace import Pace
from embed_pipeline.worker.pipeline import Pipeline
from embed_pipeline.worker.report import Tally
from embed_pipeline.worker.tools import Tools


def drain(
    tools: Tools,
    *,
    owner: str,
    first: Lease | None = None,
    limit: int | None = None,
    pace: Pace | None = None,
    on_batch: Callable[[Tally], None] = lambda tally: None,
) -> Tally:
    """Many batches in one run, because a run costs seconds to start.

    `first` is a lease taken before; `limit` bounds each batch.
    """
    pace = pace or Pace(tools.clock, limit=tools.plan.drain_for)
    with _what_was_there_left_alone():
        return Pipeline(tools, owner=owner, limit=limit, pace=pace, on_batch=on_batch).run(first)


@contextmanager
def _what_was_there_left_alone() -> Iterator[None]:
    """The garbage collector would go through all that was imported again with every few batches."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
