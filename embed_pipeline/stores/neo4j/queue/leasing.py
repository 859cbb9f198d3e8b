"""Leasing on Neo4j: one at a time looks, decides what the head of the queue allows, and takes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta

from embed_pipeline.domain.breaker import GRAPH, Breaker, probe_claimed
from embed_pipeline.domain.isolation import Tier, batch_limit, lease_order
from embed_pipeline.domain.job import EmbedJob, provider_of
from embed_pipeline.domain.lease import Lease, Refusal, RefusalReason
from embed_pipeline.domain.switch import Switch, SwitchState
from embed_pipeline.stores.neo4j.driver.database import Row
from embed_pipeline.stores.neo4j.queue import rows
from embed_pipeline.stores.neo4j.queue.backend import QueueReading, QueueTransaction
from embed_pipeline.stores.neo4j.queue.cypher import jobs as cypher
from embed_pipeline.stores.neo4j.queue.shared_state import (
    SWITCH,
    Documents,
    breaker_name,
    lock_breaker,
    save_breaker,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRequest:
    """What a caller of `lease` asks for."""

    owner: str
    model: str
    limit: int
    token: str
    duration: timedelta


def lease(transaction: QueueTransaction, request: LeaseRequest) -> Lease:
    provider = provider_of(request.model)
    seen = transaction.locked(
        cypher.LOOK_FOR_LEASE,
        names=[SWITCH, breaker_name(provider), breaker_name(GRAPH)],
        owner=request.owner,
        token=request.token,
        model=request.model,
    )
    documents = Documents(seen["states"])
    breaker = documents.breaker(provider)
    granted = Lease(
        owner=request.owner,
        token=request.token,
        duration=request.duration,
        breaker_seen=breaker.generation,
    )
    if seen["held"]:
        # An earlier call with this token, whose answer got lost; a probe is one job.
        held = _in_lease_order(seen["held"])
        return replace(granted, jobs=held, probe=breaker.is_open and len(held) == 1)
    switch, graph = documents.switch(), documents.breaker(GRAPH)
    if refusal := _refusal(transaction, switch, graph, breaker):
        return replace(granted, refusal=refusal)
    if not seen["heads"] or request.limit <= 0:
        return granted
    return _lease_from(transaction, request, granted, breaker, seen["heads"])


def _refusal(
    transaction: QueueTransaction, switch: Switch, graph: Breaker, provider: Breaker
) -> Refusal | None:
    if not switch.is_running:
        halted = switch.state is SwitchState.HALTED
        reason = RefusalReason.HALTED if halted else RefusalReason.PAUSED
        return Refusal(reason=reason, detail=switch.reason or "")
    if graph.is_open:
        return _behind(graph)
    return _behind(provider) if provider.blocks(transaction.now) else None


def _behind(breaker: Breaker) -> Refusal:
    detail = f"{breaker.name}: {breaker.reason}"
    return Refusal(reason=RefusalReason.BREAKER_OPEN, detail=detail, until=breaker.until)


def _lease_from(
    transaction: QueueTransaction,
    request: LeaseRequest,
    granted: Lease,
    breaker: Breaker,
    heads: list[Row],
) -> Lease:
    if breaker.is_open:
        # Until here it was read without its lock: somebody may have tripped or closed it since.
        breaker = lock_breaker(transaction, breaker.name)
        granted = replace(granted, breaker_seen=breaker.generation)
        if breaker.blocks(transaction.now):
            return replace(granted, refusal=_behind(breaker))
        if claimed := probe_claimed(breaker, now=transaction.now):
            save_breaker(transaction, claimed)
            granted = replace(granted, probe=True, breaker_seen=claimed.generation)
            request = replace(request, limit=1)
    in_order = sorted(heads, key=lambda head: lease_order(**head, probing=granted.probe))
    jobs = _take(transaction, request, in_order)
    if jobs:
        transaction.record("jobs.leased", owner=request.owner, job_ids=[job.id for job in jobs])
        transaction.count(jobs_leased=len(jobs))
    return replace(granted, jobs=jobs)


def _take(
    transaction: QueueTransaction, request: LeaseRequest, heads: list[Row]
) -> tuple[EmbedJob, ...]:
    """The head job's tier decides what the lease takes, so that nothing starves."""
    tier = Tier(heads[0]["tier"])
    taken = transaction.one(
        cypher.LEASE_JOBS,
        owner=request.owner,
        token=request.token,
        duration=rows.in_ms(request.duration),
        model=request.model,
        tier=int(tier),
        ranks=[head["rank"] for head in heads if head["tier"] == tier],
        room=batch_limit(tier, request.limit),
    )
    return _in_lease_order(taken["jobs"])


def _in_lease_order(found: Iterable[Row]) -> tuple[EmbedJob, ...]:
    jobs = [rows.job_of(node) for node in found]
    jobs.sort(key=lambda job: (-job.priority, job.available_at, job.id))
    return tuple(jobs)


def live_owners(look: QueueReading) -> frozenset[str]:
    """From owner to owner along the index, instead of reading all their jobs."""
    owners: set[str] = set()
    after = ""
    while found := look.all(cypher.NEXT_OWNER, after=after):
        after = found[0]["owner"]
        if found[0]["alive"]:
            owners.add(after)
    return frozenset(owners)
