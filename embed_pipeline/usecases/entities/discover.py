"""Discovery: find entities without a good vector, page by page, and enqueue them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain

from embed_pipeline.domain.embedding import Bookmark, VectorDefect
from embed_pipeline.domain.entity import Entity
from embed_pipeline.domain.job import Enqueued, EntityUid
from embed_pipeline.telemetry import emit
from embed_pipeline.usecases.entities.enqueue import enqueue_entities
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.leasing import ensure_model

PAGE = 500
CURSOR = "stale walk"


@dataclass(slots=True, kw_only=True)
class DiscoveryReport:
    """Counts that grow while discovery works; each entity counts once."""

    examined: int = 0
    """Entities that were read with their text."""
    missing: int = 0
    changed: int = 0
    """Entities with a vector of an earlier text."""
    invalid: int = 0
    """Entities with a vector of another model or dimension."""
    new_jobs: int = 0
    queued_already: int = 0
    parked: int = 0

    @property
    def found(self) -> int:
        return self.missing + self.changed + self.invalid


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much one discovery queues and reads.

    Skipping entities that have a vector is cheap and not bounded. Otherwise an entity that another
    program added to a large graph would be found after hours, not by the next discovery.
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
    """Entities without a vector first, then changed ones with a marker, then the rolling walk."""
    ensure_model(services)
    report, bounds = DiscoveryReport(), bounds or Bounds()
    found: set[EntityUid] = set()
    for entities in chain(
        missing_pages(services, report, bounds),
        _changed_pages(services, report, bounds),
        _walk_pages(services, report, bounds, found),
    ):
        found.update(entity.uid for entity in entities)
        queue_page(services, report, entities)
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
) -> Iterator[Sequence[Entity]]:
    """Entities without a vector, until the caller has queued as many as the bounds allow."""
    bookmark: Bookmark | None = None
    while not bounds.reached(report):
        found = services.graph.entities_without_embeddings(
            bounds.page(report), model=services.model, after=bookmark
        )
        report.examined += len(found.entities)
        report.missing += len(found.entities)
        if found.entities:
            yield found.entities
        bookmark = found.bookmark
        if bookmark is None:
            return


def queue_page(services: Services, report: DiscoveryReport, entities: Sequence[Entity]) -> None:
    enqueued = enqueue_entities(services.jobs, services.graph, entities, model=services.model)
    report.new_jobs += enqueued.new_jobs
    report.queued_already += enqueued.count(Enqueued.QUEUED)
    report.parked += enqueued.count(Enqueued.PARKED)


def _changed_pages(
    services: Services, report: DiscoveryReport, bounds: Bounds
) -> Iterator[Sequence[Entity]]:
    """Entities whose changed text was marked by the program that changed it."""
    after: EntityUid | None = None
    while not bounds.reached(report):
        size = bounds.page(report)
        found = services.graph.changed_entities(model=services.model, limit=size, after=after)
        report.examined += len(found)
        report.changed += len(found)
        yield found
        if len(found) < size:
            return
        after = found[-1].uid


def _walk_pages(
    services: Services, report: DiscoveryReport, bounds: Bounds, found: Set[EntityUid]
) -> Iterator[Sequence[Entity]]:
    """Vectors of another text or model: a walk that continues where the last discovery stopped.

    It reads entities again that this discovery has `found` before. They count for the bound of
    reading alone. Other entities without a vector are new; the next discovery finds them.
    """
    after, again = services.graph.cursor(CURSOR), 0
    while not (left := replace(bounds, most_read=bounds.most_read - again)).reached(report):
        page = services.graph.walk(
            model=services.model, defects=tuple(VectorDefect), after=after, size=left.page(report)
        )
        new = [each for each in page.candidates if each.entity.uid not in found]
        known = len(page.candidates) - len(new)
        again += known
        report.examined += page.examined - known
        defects = Counter(each.defect for each in new)
        report.changed += defects[VectorDefect.STALE]
        report.invalid += defects[VectorDefect.WRONG_MODEL] + defects[VectorDefect.WRONG_DIMENSION]
        yield [each.entity for each in new if each.defect is not VectorDefect.MISSING]
        after = page.next_after
        services.graph.save_cursor(CURSOR, after)
        if after is None:
            return
