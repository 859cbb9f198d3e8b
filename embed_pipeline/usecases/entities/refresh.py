"""Refresh: a program that changed entities by itself names them, and what changed is queued."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from embed_pipeline.domain.entity import Entity
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.domain.partition import Labelled
from embed_pipeline.errors import CriticalError, TransientError
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline.telemetry import emit
from embed_pipeline.usecases.entities.discover import DiscoveryReport, queue_page
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.leasing import ensure_model

PAGE = 500
MOST_NAMESAKES = 100
MOST_LISTED = 20
"""Unknown names that a report lists, so that its size does not depend on the call."""


@dataclass(slots=True, kw_only=True)
class RefreshReport:
    """Each entity is counted once; several may have the same name."""

    queued: int = 0
    """Entities with a job that waits, new or queued before."""
    unchanged: int = 0
    """Entities whose vector is that of their text."""
    nothing_to_embed: int = 0
    excluded: int = 0
    """Deleted ones, and others that are not embedded."""
    parked: int = 0
    """Entities whose job failed with this text; `retry_failed` or a force queues it again."""
    unknown: int = 0
    unknown_names: list[str] = field(default_factory=list)
    """The first of the unknown."""
    queue_reached: bool = True
    """False: the queue could not be reached; what changed is marked, so discovery queues it."""


def refresh(services: Services, names: Iterable[str]) -> RefreshReport:
    """Each name is a key, or an exact name if no entity has that key. Works in pages."""
    ensure_model(services)
    report = RefreshReport()
    remaining = iter(names)
    while page := list(dict.fromkeys(islice(remaining, PAGE))):
        _refresh_page(services, _find(services.graph, page, report), report)
    emit(
        "entities.refreshed",
        count=report.queued,
        unchanged=report.unchanged,
        unknown=report.unknown,
    )
    return report


def _find(graph: EntityStore, names: Sequence[str], report: RefreshReport) -> list[EntityUid]:
    keys = graph.read_entities([EntityUid(name) for name in names])
    found = list(keys)
    for name in names:
        if name in keys:
            continue
        named = graph.find_by_name(name, limit=MOST_NAMESAKES)
        found += [entity.uid for entity in named]
        if not named:
            report.unknown += 1
            report.unknown_names += [name][: MOST_LISTED - len(report.unknown_names)]
    return found


def _refresh_page(services: Services, uids: Sequence[EntityUid], report: RefreshReport) -> None:
    there = services.graph.relabel(uids) if uids else ()
    report.nothing_to_embed += sum(one.labels.nothing_to_embed for one in there)
    report.excluded += sum(one.labels.excluded is not None for one in there)
    entities = [one.entity for one in there if _can_be_embedded(one)]
    try:
        _queue(services, entities, report)
    except (TransientError, CriticalError) as error:
        emit("entities.queue_unavailable", count=len(entities), error=error)
        report.queue_reached = False


def _can_be_embedded(one: Labelled) -> bool:
    return not one.labels.nothing_to_embed and one.labels.excluded is None


def _queue(services: Services, entities: Sequence[Entity], report: RefreshReport) -> None:
    found = DiscoveryReport()
    queue_page(services, found, entities)
    queued = found.new_jobs + found.queued_already
    report.queued += queued
    report.parked += found.parked
    report.unchanged += len(entities) - queued - found.parked
