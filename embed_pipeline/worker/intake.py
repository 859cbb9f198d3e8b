"""A batch on its way in: leased, then read from the graph and packed, while others are embedded."""

from __future__ import annotations

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
class Taken:
    """A lease, and the batch it brought if it brought any."""

    lease: Lease
    holding: Holding | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """What a batch is: jobs that need no request and requests to send, or trouble with reading."""

    found: Sorted = field(default_factory=Sorted)
    requests: list[Request] = field(default_factory=list)
    trouble: TransientError | CriticalError | None = None


def take(
    tools: Tools, *, owner: str, limit: int | None = None, lease: Lease | None = None
) -> Taken:
    """Lease, or begin with a lease that was taken before; from here on it is extended."""
    lease = lease or lease_batch(tools, owner=owner, limit=limit)
    if lease.refusal is not None or not lease.jobs:
        return Taken(lease=lease)
    return Taken(lease=lease, holding=Holding(tools, lease))


def read_in(tools: Tools, holding: Holding) -> Intake:
    jobs, seen = holding.lease.jobs, holding.graph_seen.generation
    try:
        found = sort_jobs(holding)
        if found.fresh:
            tools.provider.get_ready()
        requests = requests_for(found.fresh, provider=tools.provider, budget=tools.limiter.limit)
    except TransientError as error:
        instead = pause_for_graph(tools, error, seen=seen, entities=len(jobs))
        return Intake(trouble=instead or error)
    except CriticalError as error:
        return Intake(trouble=error)
    return Intake(found=found, requests=requests)
