"""Leasing: may jobs be taken now, what does the head of the queue allow, and which are taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from embed_pipeline.domain.breaker import probe_claimed
from embed_pipeline.domain.control import Step, behind
from embed_pipeline.domain.job import EmbedJob, provider_of
from embed_pipeline.domain.lease import Head, Lease, Tier, batch_limit, lease_order
from embed_pipeline.stores.queue.control import control_names, control_state
from embed_pipeline.stores.queue.documents import breaker_of
from embed_pipeline.stores.queue.transaction import Transaction


def lease(transaction: Transaction, asked: Lease, *, model: str, limit: int) -> Lease:
    """`asked` has the owner, the token and the duration; the answer has the rest."""
    provider = provider_of(model)
    view = transaction.jobs.view_for_lease(
        owner=asked.owner, token=asked.token, model=model, documents=control_names(provider)
    )
    state = control_state(view.documents, provider=provider, now=transaction.now)
    granted = replace(asked, breaker_seen=state.provider.generation)
    if view.held:
        # A probe is one job.
        probe = state.provider.is_open and len(view.held) == 1
        return replace(granted, jobs=in_lease_order(view.held), probe=probe)
    if refusal := state.refusal(Step.LEASE):
        return replace(granted, refusal=refusal)
    if not view.heads or limit <= 0:
        return granted
    if state.provider.is_open:
        granted, limit = _claim_probe(transaction, granted, provider, limit)
    if granted.refusal is None:
        granted = _take(transaction, granted, view.heads, model=model, limit=limit)
    return granted


def _claim_probe(
    transaction: Transaction, granted: Lease, provider: str, limit: int
) -> tuple[Lease, int]:
    """The lease and its limit, decided again under the breaker's lock: others may have tripped,
    claimed or closed it since it was read."""
    breaker = breaker_of(provider).lock(transaction)
    granted = replace(granted, breaker_seen=breaker.generation)
    if breaker.blocks(transaction.now):
        return replace(granted, refusal=behind(breaker)), 0
    claimed = probe_claimed(breaker, now=transaction.now)
    if claimed is None:
        return granted, limit
    breaker_of(provider).save(transaction, claimed)
    return replace(granted, probe=True), 1


def _take(
    transaction: Transaction, granted: Lease, heads: Sequence[Head], *, model: str, limit: int
) -> Lease:
    """The head job's tier decides what the lease takes, so that nothing starves."""
    first, *_ = in_order = sorted(heads, key=lambda h: lease_order(h, probing=granted.probe))
    tier = Tier(first.tier)
    taken = transaction.jobs.take(
        granted,
        model=model,
        tier=tier,
        ranks=[head.rank for head in in_order if head.tier == tier],
        limit=batch_limit(tier, limit),
    )
    jobs = in_lease_order(taken)
    if jobs:
        transaction.record("jobs.leased", owner=granted.owner, job_ids=[job.id for job in jobs])
        transaction.count(jobs_leased=len(jobs))
    return replace(granted, jobs=jobs)


def in_lease_order(jobs: Sequence[EmbedJob]) -> tuple[EmbedJob, ...]:
    """Databases return changed rows in no order of ours."""
    return tuple(sorted(jobs, key=lambda job: (-job.priority, job.available_at, job.id)))
