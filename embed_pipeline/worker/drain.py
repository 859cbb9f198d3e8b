"""One run: lease and embed, batch after batch, until something ends it."""

from __future__ import annotations

from collections.abc import Callable

from embed_pipeline.model.lease import Lease, RefusalReason
from embed_pipeline.worker.embed import embed_batch
from embed_pipeline.worker.lease import lease_batch
from embed_pipeline.worker.pace import Pace
from embed_pipeline.worker.report import Ending, Tally
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
    tally = Tally()
    pace = pace or Pace(tools.clock, limit=tools.plan.drain_for)
    lease = first or lease_batch(tools, owner=owner, limit=limit)
    while True:
        if lease.refusal is not None:
            spent = lease.refusal.reason is RefusalReason.BUDGET_SPENT
            tally.ending = Ending.BUDGET_SPENT if spent else Ending.REFUSED
            tally.back_at = lease.refusal.until
            return tally
        if not lease.jobs:
            tally.ending, tally.back_at = Ending.QUEUE_EMPTY, None
            return tally
        tally.ending = Ending.QUEUE_EMPTY
        embed_batch(tools, lease, pace=pace, tally=tally)
        on_batch(tally)
        if tally.ending is not Ending.QUEUE_EMPTY:
            return tally
        if pace.stopped or pace.time_is_up:
            tally.ending = Ending.STOPPED if pace.stopped else Ending.TIME_UP
            return tally
        lease = lease_batch(tools, owner=owner, limit=limit)
