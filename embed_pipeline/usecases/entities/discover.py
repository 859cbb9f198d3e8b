"""Discovery: find what has no good vector, page by page, and queue it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from embed_pipeline.domain.embedding import Bookmark, VectorDefect
from embed_pipeline.domain.entity import Entity
from embed_pipeline.domain.job import Enqueued, EntityUid
from embed_pipeline.telemetry import emit
from embed_pipeline.usecases.entities.enqueue import enqueue_entities
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.leasing import ensure_model

PAGE = 500
CURSOR = "stale walk"
SPOILT = frozenset({VectorDefect.STALE, VectorDefect.WRONG_MODEL, VectorDefect.WRONG_DIMENSION})


@dataclass(slots=True, kw_only=True)
class DiscoveryReport:
    """`examined` bounds the reading, `new_jobs` the queueing."""

    examined: int = 0
    missing: int = 0
    changed: int = 0
    invalid: int = 0
    new_jobs: int = 0
    queued_already: int = 0
    parked: int = 0

    @property
    def found(self) -> int:
        return self.missing + self.changed + self.invalid


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Of what is read with its text; passing by the keys of those that have a vector is cheap.

    Were that bounded too, an entity that another program added to a large graph would be found
    after hours instead of at the next turn.
    """

    most_jobs: int = 5_000
    most_read: int = 50_000

    def reached(self, report: DiscoveryReport) -> bool:
        return report.new_jobs >= self.most_jobs or report.examined >= self.most_read

    def page(self, report: DiscoveryReport) -> int:
        return min(PAGE, self.most_jobs - report.new_jobs, self.most_read - report.examined)


def discover(
    services: Services,
    *,
    bounds: Bounds | None = None,
    on_page: Callable[[DiscoveryReport], None] = lambda report: None,
) -> DiscoveryReport:
    """Missing first, then changed ones that are marked, then the rolling walk over the rest."""
    bounds = bounds or Bounds()
    ensure_model(services)
    report = DiscoveryReport()
    for entities in missing_pages(services, report, bounds):
        report.missing += len(entities)
        queue(services, report, entities)
        on_page(report)
    for found in _changed_pages(services, report, bounds):
        report.changed += len(found)
        queue(services, report, found)
        on_page(report)
    for candidates in _spoilt_pages(services, report, bounds):
        report.invalid += len(candidates)
        queue(services, report, candidates)
        on_page(report)
    emit(
        "entities.discovered",
        count=report.found,
        examined=report.examined,
        new_jobs=report.new_jobs,
        parked=report.parked,
    )
    return report


def missing_pages(
    services: Services, report: DiscoveryReport, bounds: Bounds
) -> Iterator[tuple[Entity, ...]]:
    """Entities without a vector; the caller's queueing moves the bounds."""
    bookmark: Bookmark | None = None
    while not bounds.reached(report):
        found = services.graph.entities_without_embeddings(
            bounds.page(report), model=services.model, after=bookmark
        )
        report.examined += len(found.entities)
        if found.entities:
            yield found.entities
        bookmark = found.bookmark
        if bookmark is None:
            return


def _changed_pages(
    services: Services, report: DiscoveryReport, bounds: Bounds
) -> Iterator[tuple[Entity, ...]]:
    after: EntityUid | None = None
    while not bounds.reached(report):
        size = bounds.page(report)
        found = services.graph.changed_entities(model=services.model, limit=size, after=after)
        report.examined += len(found)
        yield found
        if len(found) < size:
            return
        after = found[-1].uid


def _spoilt_pages(
    services: Services, report: DiscoveryReport, bounds: Bounds
) -> Iterator[list[Entity]]:
    """Texts that other writers changed: a walk that goes on where the last one stopped."""
    after = services.graph.cursor(CURSOR)
    while not bounds.reached(report):
        page = services.graph.walk(
            model=services.model, defects=SPOILT, after=after, size=bounds.page(report)
        )
        report.examined += page.examined
        yield [candidate.entity for candidate in page.candidates]
        after = page.next_after
        services.graph.save_cursor(CURSOR, after)
        if after is None:
            return


def queue(services: Services, report: DiscoveryReport, entities: Sequence[Entity]) -> None:
    enqueued = enqueue_entities(services.jobs, services.graph, entities, model=services.model)
    report.new_jobs += enqueued.new_jobs
    report.queued_already += enqueued.count(Enqueued.QUEUED)
    report.parked += enqueued.count(Enqueued.PARKED)
