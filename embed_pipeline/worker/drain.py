"""One run: batch after batch, until something ends it."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from embed_pipeline.domain.lease import Lease
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.report import Tally
from embed_pipeline.worker.run import Pipeline
from embed_pipeline.worker.stop import Deadline


def drain(
    services: Services,
    *,
    owner: str,
    first: Lease | None = None,
    limit: int | None = None,
    deadline: Deadline | None = None,
    on_batch: Callable[[Tally], None] = lambda tally: None,
) -> Tally:
    """Many batches in one run, because a run costs seconds to start.

    `first` is a lease taken before; `limit` bounds each batch.
    """
    deadline = deadline or Deadline(services.clock, limit=services.run_limits.drain_for)
    with _what_was_there_left_alone():
        return Pipeline(
            services, owner=owner, limit=limit, deadline=deadline, on_batch=on_batch
        ).run(first)


@contextmanager
def _what_was_there_left_alone() -> Iterator[None]:
    """The garbage collector would go through all that was imported again with every few batches."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
