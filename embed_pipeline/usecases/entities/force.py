"""force_generate_embedding: embed one entity again, or queue a bounded number without vector."""

from __future__ import annotations

from dataclasses import dataclass

from embed_pipeline.domain.embedding import Bookmark
from embed_pipeline.domain.entity import Entity
from embed_pipeline.domain.job import HIGHEST_PRIORITY, Enqueued, EntityUid
from embed_pipeline.errors import RequestError
from embed_pipeline.usecases.entities.discover import (
    Bounds,
    DiscoveryReport,
    queue_page,
    read_missing,
)
from embed_pipeline.usecases.entities.enqueue import enqueue_known
from embed_pipeline.usecases.entities.named import find_entity
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.leasing import ensure_model

DEFAULT_LIMIT = 10
MOST = 1_000
READ_FACTOR = 10
"""Entities that a repair reads at most, for each one that it may queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForceReport:
    """`message` names the entity, or gives the counts."""

    message: str
    discovered: int
    queued: int


def force_embedding(
    services: Services,
    *,
    entity_name: str | None = None,
    key: EntityUid | None = None,
    limit: int | None = None,
) -> ForceReport:
    """A name or a key wins over a limit."""
    if entity_name is not None or key is not None:
        return _force_one(services, find_entity(services.graph, name=entity_name, key=key))
    return _repair(services, DEFAULT_LIMIT if limit is None else limit)


def _force_one(services: Services, entity: Entity) -> ForceReport:
    if not entity.text:
        properties = ", ".join(map(str, services.graph.collection_of(entity).text))
        raise RequestError(
            f"{entity.name!r} ({entity.uid}) has nothing to embed: {properties} are all empty."
        )
    ensure_model(services)
    report = enqueue_known(
        services.jobs,
        [entity],
        embedded=(),  # a forced job does not depend on it
        model=services.model,
        force=True,
        priority=HIGHEST_PRIORITY,
    )
    already = report.count(Enqueued.QUEUED)
    how = "was queued already and is forced now" if already else "is queued"
    return ForceReport(
        message=f"The embedding of {entity.name!r} ({entity.uid}) {how}.", discovered=1, queued=1
    )


def _repair(services: Services, limit: int) -> ForceReport:
    """Queue up to `limit` entities without a vector; those parked or queued already do not count.

    Reads at most ten times as many: with a long queue it would otherwise read all of it.
    """
    if limit < 1:
        raise RequestError(f"The limit must be from 1 to {MOST}, got {limit}.")
    most_jobs = min(limit, MOST)
    bounds = Bounds(most_jobs=most_jobs, most_read=READ_FACTOR * most_jobs)
    ensure_model(services)
    report = DiscoveryReport()
    after: Bookmark | None = None
    while not bounds.reached(report):
        found = read_missing(services, report, bounds, after)
        queue_page(services, report, found.entities)
        after = found.bookmark
        if after is None:
            break
    notes = []
    if limit > MOST:
        notes.append(f"the limit was capped at {MOST}")
    if report.queued_already:
        notes.append(f"{report.queued_already} were queued already")
    if report.parked:
        notes.append(f"{report.parked} failed before and stay parked")
    if report.new_jobs < most_jobs and report.examined >= bounds.most_read:
        notes.append(
            f"no more than {report.examined} were looked at, more may exist: discovery finds them"
        )
    message = f"Found {report.missing} entities without an embedding, queued {report.new_jobs}"
    return ForceReport(
        message="; ".join([message, *notes]) + ".",
        discovered=report.missing,
        queued=report.new_jobs,
    )
