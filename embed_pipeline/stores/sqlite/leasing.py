"""Leasing on SQLite: who may take, what the head of the queue decides, and the taking."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, replace
from datetime import timedelta

from embed_pipeline.model.breaker import GRAPH, Breaker, probe_claimed
from embed_pipeline.model.job import EmbedJob, provider_of
from embed_pipeline.model.lease import Lease, Refusal, RefusalReason
from embed_pipeline.model.switch import SwitchState
from embed_pipeline.model.travel import Tier, company, turn
from embed_pipeline.stores.sqlite import job_statements as sql
from embed_pipeline.stores.sqlite import rows
from embed_pipeline.stores.sqlite.queue import QueueTransaction
from embed_pipeline.stores.sqlite.shared_state import read_breaker, read_switch, save_breaker


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a caller of `lease` asks for."""

    owner: str
    model: str
    limit: int
    token: str
    duration: timedelta


def lease(transaction: QueueTransaction, wish: Wish) -> Lease:
    granted = Lease(owner=wish.owner, token=wish.token, duration=wish.duration)
    breaker = read_breaker(transaction, provider_of(wish.model))
    granted = replace(granted, breaker_seen=breaker.generation)
    if held := leased_before(transaction, wish):
        return replace(granted, jobs=held, probe=breaker.is_open and len(held) == 1)
    if refusal := _refusal(transaction, breaker):
        return replace(granted, refusal=refusal)
    heads = transaction.all(sql.DUE_HEADS, model=wish.model, now=transaction.now_ms)
    if not heads or wish.limit <= 0:
        return granted
    heads.sort(key=lambda head: turn(**head, probing=breaker.is_open))
    if breaker.is_open:
        granted, wish = _as_probe(transaction, breaker, granted, wish)
    tier = Tier(heads[0]["tier"])
    ranks = [row["rank"] for row in heads if row["tier"] == tier]
    jobs = _take(transaction, wish, tier=tier, ranks=ranks)
    transaction.record("jobs.leased", owner=wish.owner, job_ids=[job.id for job in jobs])
    transaction.count(jobs_leased=len(jobs))
    return replace(granted, jobs=jobs)


def leased_before(transaction: QueueTransaction, wish: Wish) -> tuple[EmbedJob, ...]:
    """The jobs of an earlier call with this token, whose answer got lost."""
    found = transaction.all(sql.FORMERLY_LEASED, token=wish.token, owner=wish.owner)
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
    transaction: QueueTransaction, breaker: Breaker, granted: Lease, wish: Wish
) -> tuple[Lease, Wish]:
    claimed = probe_claimed(breaker, now=transaction.now)
    assert claimed is not None, "an open breaker that does not block can be probed"
    save_breaker(transaction, claimed)
    return (
        replace(granted, probe=True, breaker_seen=claimed.generation),
        replace(wish, limit=1),
    )


def _take(
    transaction: QueueTransaction, wish: Wish, *, tier: Tier, ranks: list[int]
) -> tuple[EmbedJob, ...]:
    room = company(tier, wish.limit)
    taken: list[sqlite3.Row] = []
    for rank in ranks:
        if len(taken) == room:
            break
        taken += transaction.all(
            sql.LEASE_JOBS,
            owner=wish.owner,
            token=wish.token,
            until=transaction.in_ms(wish.duration),
            now=transaction.now_ms,
            model=wish.model,
            rank=rank,
            tier=tier,
            limit=room - len(taken),
        )
    return _in_lease_order(taken)


def _in_lease_order(found: list[sqlite3.Row]) -> tuple[EmbedJob, ...]:
    """SQLite returns changed rows in no order of ours."""
    found.sort(key=lambda row: (row["rank"], row["available_at"], row["seq"]))
    return tuple(rows.jobs_of(found))
