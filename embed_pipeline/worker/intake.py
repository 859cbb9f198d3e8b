"""A batch on its way in: leased, read from the graph and packed, while others are embedded."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

from embed_pipeline.domain.lease import Lease
from embed_pipeline.errors import CriticalError, TransientError
from embed_pipeline.worker.batch import LeasedBatch
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.graph_trouble import pause_for_graph
from embed_pipeline.worker.leasing import lease_batch
from embed_pipeline.worker.packing import Request, requests_for
from embed_pipeline.worker.prepare import SortedJobs, sort_jobs


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """What a lease brought: nothing, jobs ready to send, or trouble with reading their texts."""

    lease: Lease
    batch: LeasedBatch | None = None
    found: SortedJobs = field(default_factory=SortedJobs)
    requests: list[Request] = field(default_factory=list)
    trouble: TransientError | CriticalError | None = None


def take_in(
    services: Services, *, owner: str, limit: int | None = None, lease: Lease | None = None
) -> Intake:
    """Lease, or begin with a lease that was taken before; from here on it is extended."""
    lease = lease or lease_batch(services, owner=owner, limit=limit)
    if lease.refusal is not None or not lease.jobs:
        return Intake(lease=lease)
    batch = LeasedBatch(services, lease)
    try:
        return _read_in(services, batch)
    except BaseException:
        # Where the queue is down as well this ends the heartbeat, and the lease ends by itself.
        with suppress(Exception):
            batch.close()
        raise


def _read_in(services: Services, batch: LeasedBatch) -> Intake:
    lease, seen = batch.lease, batch.graph_seen.generation
    try:
        found = sort_jobs(batch)
        if found.fresh:
            services.provider.get_ready()
        requests = requests_for(
            found.fresh, provider=services.provider, budget=services.limiter.limit
        )
    except TransientError as error:
        instead = pause_for_graph(services, error, seen=seen, entities=len(lease.jobs))
        return Intake(lease=lease, batch=batch, trouble=instead or error)
    except CriticalError as error:
        return Intake(lease=lease, batch=batch, trouble=error)
    return Intake(lease=lease, batch=batch, found=found, requests=requests)
