"""A batch on its way in: leased, read from the graph and packed, while others are embedded."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

from embed_pipeline.errors import CriticalError, TransientError
from embed_pipeline.model.lease import Lease
from embed_pipeline.worker.graph_trouble import pause_for_graph
from embed_pipeline.worker.holding import Holding
from embed_pipeline.worker.lease import lease_batch
from embed_pipeline.worker.prepare import Sorted, sort_jobs
from embed_pipeline.worker.requests import Request, requests_for
from embed_pipeline.worker.tools import Tools


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """What a lease brought: nothing, jobs ready to send, or trouble with reading their texts."""

    lease: Lease
    holding: Holding | None = None
    found: Sorted = field(default_factory=Sorted)
    requests: list[Request] = field(default_factory=list)
    trouble: TransientError | CriticalError | None = None


def take_in(
    tools: Tools, *, owner: str, limit: int | None = None, lease: Lease | None = None
) -> Intake:
    """Lease, or begin with a lease that was taken before; from here on it is extended."""
    lease = lease or lease_batch(tools, owner=owner, limit=limit)
    if lease.refusal is not None or not lease.jobs:
        return Intake(lease=lease)
    holding = Holding(tools, lease)
    try:
        return _read_in(tools, holding)
    except BaseException:
        # Where the queue is down as well this ends the heartbeat, and the lease ends by itself.
        with suppress(Exception):
            holding.close()
        raise


def _read_in(tools: Tools, holding: Holding) -> Intake:
    lease, seen = holding.lease, holding.graph_seen.generation
    try:
        found = sort_jobs(holding)
        if found.fresh:
            tools.provider.get_ready()
        requests = requests_for(found.fresh, provider=tools.provider, budget=tools.limiter.limit)
    except TransientError as error:
        instead = pause_for_graph(tools, error, seen=seen, entities=len(lease.jobs))
        return Intake(lease=lease, holding=holding, trouble=instead or error)
    except CriticalError as error:
        return Intake(lease=lease, holding=holding, trouble=error)
    return Intake(lease=lease, holding=holding, found=found, requests=requests)
