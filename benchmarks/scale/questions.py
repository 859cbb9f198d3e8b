"""What is asked of a graph, each as its caller asks it."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta

from benchmarks.scale.backends import Backend
from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.interfaces.metrics.collector import as_text, registry_of
from embed_pipeline.interfaces.metrics.reader import Reader
from embed_pipeline.usecases.entities.create import create_entities
from embed_pipeline.usecases.entities.discover import Bounds, discover
from embed_pipeline.usecases.entities.refill import check_refill
from embed_pipeline.usecases.insight.coverage import (
    quick_coverage,
    read_coverage,
    read_queue_state,
)
from embed_pipeline.usecases.insight.search import search
from embed_pipeline.usecases.insight.why import why
from embed_pipeline.usecases.queue.readiness import check_readiness
from embed_pipeline.worker.run import drain

Ask = Callable[[], object]

AUDIT_PAGE = 5_000


def questions(backend: Backend, size: int) -> dict[str, Ask]:
    """Of a graph where every entity is embedded."""
    services = backend.services
    jobs, model = services.jobs, services.model

    def scrape() -> str:
        return as_text(registry_of(Reader(services, counts_every=timedelta(0))))

    def tick() -> object:
        return check_readiness(jobs, services.limiter, model=model), check_refill(services)

    def observe() -> object:
        return read_queue_state(jobs, model=model), quick_coverage(services)

    def words() -> str:
        return f"something about {random.randrange(size)}"

    return {
        "RETURN 1": backend.ping,
        "coverage": lambda: read_coverage(services),
        "missing(10), none missing": lambda: missing(backend),
        "discover, nothing to do": lambda: discover(services, bounds=Bounds(audit=False)),
        "search": lambda: search(services, words()),
        "search of a type": lambda: search(services, words(), entity_type="type 7"),
        "why": lambda: why(services, name=f"entity {random.randrange(size)}"),
        "sensors' ticks": tick,
        "metrics scrape": scrape,
        "observe_job's reads": observe,
    }


def first_search(backend: Backend) -> None:
    """With opening the stores, as a process does that only searches."""
    with backend.opened() as services:
        search(services, "something about it")


def missing(backend: Backend) -> object:
    return backend.services.graph.entities_without_embeddings(10, model=backend.services.model)


class Fresh:
    """New entities that have no vector, until they are embedded."""

    def __init__(self, backend: Backend) -> None:
        self._backend, self._made = backend, 0

    def create_50(self) -> object:
        self._made += 50
        services = self._backend.services
        new = [NewEntity(name=f"fresh {self._made - n}") for n in range(50)]
        return create_entities(services.jobs, services.graph, new, model=services.model)

    def unmark(self) -> None:
        """As discovery does once it has queued them; they are found only by what they lack."""
        graph, model = self._backend.services.graph, self._backend.services.model
        while marked := graph.entities_without_embeddings(1_000, model=model).entities:
            if not graph.exchange_markers({entity.uid: entity.version for entity in marked}):
                return

    def embed(self) -> None:
        drain(self._backend.services, owner="scale")


def audit(backend: Backend) -> None:
    graph, model, after = backend.services.graph, backend.services.model, None
    while True:
        page = graph.audit_page(model=model, after=after, size=AUDIT_PAGE, repair=False)
        after = page.next_after
        if after is None:
            return
