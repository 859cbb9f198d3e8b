"""Leasing on SQLite: who may take, what the head of the queue decides, and the taking."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, replace
from datetime import timedelta

from embed_pipeline.domain.breaker import GRAPH, Breaker, probe_claimed
from embed_pipeline.domain.isolation import Tier, batch_limit, lease_order
from embed_pipeline.domain.job import EmbedJob, provider_of
from embed_pipeline.domain.lease import Lease, Refusal, RefusalReason
from embed_pipeline.domain.switch import SwitchState
from embed_pipeline.stores.sqlite.queue import job_sql as sql
from embed_pipeline.stores.sqlite.queue import rows
from embed_pipeline.stores.sqlite.queue.backend import QueueTransaction
from embed_pipeline.stores.sqlite.queue.shared_state import read_breaker, read_switch, save_breaker


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRequest:
    """What a caller of `lease` asks for."""

    owner: str
    model: str
    limit: int
    token: str
    duration: timedelta


def lease(transaction: QueueTransaction, request: LeaseRequest) -> Lease:
    granted = Lease(owner=request.owner, token=request.token, duration=request.duration)
    breaker = read_breaker(transaction, provider_of(request.model))
    granted = replace(granted, breaker_seen=breaker.generation)
    if held := leased_before(transaction, request):
        return replace(granted, jobs=held, probe=breaker.is_open and len(held) == 1)
    if refusal := _refusal(transaction, breaker):
        return replace(granted, refusal=refusal)
    heads = transaction.all(sql.DUE_HEADS, model=request.model, now=transaction.now_ms)
    if not heads or request.limit <= 0:
        return granted
    heads.sort(key=lambda head: lease_order(**head, probing=breaker.is_open))
    if breaker.is_open:
        granted, request = _as_probe(transaction, breaker, granted, request)
    tier = Tier(heads[0]["tier"])
    ranks = [row["rank"] for row in heads if row["tier"] == tier]
    jobs = _take(transaction, request, tier=tier, ranks=ranks)
    transaction.record("jobs.leased", owner=request.owner, job_ids=[job.id for job in jobs])
    transaction.count(jobs_leased=len(jobs))
    return replace(granted, jobs=jobs)


def leased_before(transaction: QueueTransaction, request: LeaseRequest) -> tuple[EmbedJob, ...]:
    """The jobs of an earlier call with this token, whose answer got lost."""
    found = transaction.all(sql.FORMERLY_LEASED, token=request.token, owner=request.owner)
    return _in_lease_order(found)


def _refusal(transaction: QueueTransaction, provider: Breaker) -> Refusal | None:
    switch = read_switch(transaction)
    if not switch.is_running:
        halted = switch.state is SwitchState.HALTED
        reason = RefusalReason.HALTED if halted else RefusalReason.PAUSED
        return Refusal(reason=reason, detail=switch.reason or "")
    graph = read_breaker(transaction, GRAPH)
    if graph.is_open:
        return _behind(graph)
    return _behind(provider) if provider.blocks(transaction.now) else None


def _behind(breaker: Breaker) -> Refusal:
    detail = f"{breaker.name}: {breaker.reason}"
    return Refusal(reason=RefusalReason.BREAKER_OPEN, detail=detail, until=breaker.until)


def _as_probe(
    transaction: QueueTransaction, breaker: Breaker, granted: Lease, request: LeaseRequest
) -> tuple[Lease, LeaseRequest]:
    claimed = probe_claimed(breaker, now=transaction.now)
    assert claimed is not None, "an open breaker that does not block can be probed"
    save_breaker(transaction, claimed)
    return (
        replace(granted, probe=True, breaker_seen=claimed.generation),
        replace(request, limit=1),
    )


def _take(
    transaction: QueueTransaction, request: LeaseRequest, *, tier: Tier, ranks: list[int]
) -> tuple[EmbedJob, ...]:
    room = batch_limit(tier, request.limit)
    taken: list[sqlite3.Row] = []
    for rank in ranks:
        if len(taken) == room:
            break
        taken += transaction.all(
            sql.LEASE_JOBS,
            owner=request.owner,
            token=request.token,
            until=transaction.in_ms(request.duration),
            now=transaction.now_ms,
            model=request.model,
            rank=rank,
            tier=tier,
            limit=room - len(taken),
        )
    return _in_lease_order(taken)


def _in_lease_order(found: list[sqlite3.Row]) -> tuple[EmbedJob, ...]:
    """SQLite returns changed rows in no order of ours."""
    found.sort(key=lambda row: (row["rank"], row["available_at"], row["seq"]))
    return tuple(rows.jobs_of(found))
