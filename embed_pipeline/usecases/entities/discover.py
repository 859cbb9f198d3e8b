"""Discovery: find entities without a good vector, page by page, and enqueue them.

Marked ones come first. Those without a vector follow, from where the last discovery stopped at its
bound. The audit finds what other programs changed without a marker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from embed_pipeline.domain.embedding import Bookmark, Discovery
from embed_pipeline.domain.entity import Entity
from embed_pipeline.domain.job import Enqueued, EntityUid
from embed_pipeline.telemetry import emit
from embed_pipeline.usecases.entities.audit import audit
from embed_pipeline.usecases.entities.enqueue import enqueue_entities
from embed_pipeline.usecases.entities.refill import count_unqueued
from embed_pipeline.usecases.queue.exclusive import exclusively
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.leasing import ensure_model

TASK = "discovery"
PAGE = 1_000
CURSOR = "missing walk"
START = Bookmark(uid=EntityUid(""), marked=False)
"""Before the first unmarked entity."""

Pages = Iterator[Sequence[Entity]]


@dataclass(slots=True, kw_only=True)
class DiscoveryReport:
    """Counts that grow while discovery works."""

    examined: int = 0
    """Entities that were read with their text."""
    missing: int = 0
    changed: int = 0
    """Entities with a vector of an earlier text."""
    invalid: int = 0
    """Of the audited ones: those with a vector of another model or dimension. They are missing."""
    new_jobs: int = 0
    queued_already: int = 0
    parked: int = 0
    left: int = 0
    """Where a bound ended it: about so many entities without vector and job, or with a marker."""
    busy: str | None = None
    """Who discovers already, so that this discovery did nothing."""

    @property
    def found(self) -> int:
        return self.missing + self.changed


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much one discovery queues and reads."""

    most_jobs: int = 5_000
    most_read: int = 50_000
    audit: bool = True
    """Whether to audit first, up to `most_read` entities, for changes without a marker."""

    def reached(self, report: DiscoveryReport) -> bool:
        return report.new_jobs >= self.most_jobs or report.examined >= self.most_read

    def page(self, report: DiscoveryReport) -> int:
        return min(PAGE, self.most_jobs - report.new_jobs, self.most_read - report.examined)


WITHOUT_BOUND = Bounds(most_jobs=2**62, most_read=2**62, audit=False)


def discover(
    services: Services,
    *,
    bounds: Bounds | None = None,
    owner: str | None = None,
    on_page: Callable[[DiscoveryReport], None] = lambda report: None,
) -> DiscoveryReport:
    """Audit, then queue marked entities with a changed text, then those without a vector."""
    ensure_model(services)
    report, bounds = DiscoveryReport(), bounds or Bounds()
    with exclusively(services, TASK, owner=owner) as lease:
        if not lease.is_held:
            report.busy = lease.holder
            return report
        services.graph.mark_changed()
        if bounds.audit:
            found = audit(services, most_read=bounds.most_read, owner=owner).counts
            report.invalid = found.wrong_model + found.wrong_dimension + found.invalid
        for entities in chain(
            _changed_pages(services, report, bounds), _missing_pages(services, report, bounds)
        ):
            queue_page(services, report, entities)
            on_page(report)
            if not lease.keep():
                break
    if bounds.reached(report):
        counts = services.graph.counts(model=services.model)
        report.left = max(count_unqueued(services, counts), counts.marked)
    emit(
        "entities.discovered",
        count=report.found,
        examined=report.examined,
        new_jobs=report.new_jobs,
        parked=report.parked,
        left=report.left,
    )
    return report


def queue_page(services: Services, report: DiscoveryReport, entities: Sequence[Entity]) -> None:
    """Afterwards the markers say that the queue knows these versions."""
    if not entities:
        return
    enqueued = enqueue_entities(services.jobs, services.graph, entities, model=services.model)
    services.graph.exchange_markers({entity.uid: entity.version for entity in entities})
    report.new_jobs += enqueued.new_jobs
    report.queued_already += enqueued.count(Enqueued.QUEUED)
    report.parked += enqueued.count(Enqueued.PARKED)


def _changed_pages(services: Services, report: DiscoveryReport, bounds: Bounds) -> Pages:
    """Marked entities whose vector is of an earlier text."""
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


def read_missing(
    services: Services, report: DiscoveryReport, bounds: Bounds, after: Bookmark | None
) -> Discovery:
    """The next page of entities without a vector, as large as the bounds allow."""
    found = services.graph.entities_without_embeddings(
        bounds.page(report), model=services.model, after=after
    )
    report.examined += len(found.entities)
    report.missing += len(found.entities)
    return found


def _missing_pages(services: Services, report: DiscoveryReport, bounds: Bounds) -> Pages:
    """Entities without a vector: marked ones, then once around the others.

    The walk begins where the last one met its bound, so that it does not read again and again
    what is queued or parked already; the part before that place comes last.
    """
    if bounds.reached(report):
        return
    cursor = services.graph.cursor(CURSOR)
    place: Bookmark | None = None
    before_cursor: Bookmark | None = None
    has_wrapped = False
    if cursor and not services.graph.counts(model=services.model).marked:
        before_cursor, place = START, Bookmark(uid=cursor, marked=False)
    while not bounds.reached(report):
        found = read_missing(services, report, bounds, place)
        yield found.entities
        place = found.bookmark
        if place is None and before_cursor and not has_wrapped:
            place, has_wrapped = before_cursor, True
        if place is None or (
            has_wrapped and cursor and not services.graph.is_before(place.uid, cursor)
        ):
            services.graph.save_cursor(CURSOR, None)
            return
        is_new = cursor and not before_cursor and not place.marked
        if cursor and is_new and services.graph.is_before(place.uid, cursor):
            before_cursor, place = place, Bookmark(uid=cursor, marked=False)
    if place is not None and not place.marked:
        services.graph.save_cursor(CURSOR, place.uid)
