"""What one scrape reads from the queue and from the graph, each for itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from embed_pipeline.domain.breaker import GRAPH, Breaker
from embed_pipeline.domain.embedding import Coverage
from embed_pipeline.domain.health import HealthReport
from embed_pipeline.domain.job import QueueStatus, provider_of
from embed_pipeline.domain.switch import Switch
from embed_pipeline.domain.window import Allowance, RateLimit
from embed_pipeline.errors import EmbedPipelineError
from embed_pipeline.interfaces.metrics.recent import Recent
from embed_pipeline.ports.clock import Clock
from embed_pipeline.worker.context import Services

T = TypeVar("T")

COUNTS_EVERY = timedelta(seconds=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueReading:
    counters: Mapping[str, int]
    status: QueueStatus
    health: HealthReport
    switch: Switch
    breakers: tuple[Breaker, ...]
    oldest_leasable_age: timedelta
    owners: int
    has_stale: bool
    limit: RateLimit | None
    allowance: Allowance
    budget_back_in: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """None for a database that could not be read."""

    model: str
    queue: QueueReading | None
    coverage: Coverage | None


class Reader:
    """Exact counts cost a scan, so they may be up to `counts_every` old; the rest is of now.

    `on_problem` is told why a database cannot be read, once per outage and not once per scrape.
    """

    def __init__(
        self,
        services: Services,
        *,
        counts_every: timedelta = COUNTS_EVERY,
        clock: Clock | None = None,
        on_problem: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._services = services
        self._on_problem = on_problem
        self._problems: dict[str, str] = {}
        clock = clock or services.clock
        self._status = Recent(services.jobs.get_queue_status, for_=counts_every, clock=clock)
        self._coverage = Recent(self._count_coverage, for_=counts_every, clock=clock)

    def read(self) -> Reading:
        """Both at once: a driver gives up after seconds, and a scrape must not wait twice."""
        with ThreadPoolExecutor(max_workers=1) as beside:
            coverage = beside.submit(self._unless_down, "graph", self._coverage)
            queue = self._unless_down("queue", self._read_queue)
            return Reading(model=self._services.model, queue=queue, coverage=coverage.result())

    def _unless_down(self, database: str, read: Callable[[], T]) -> T | None:
        try:
            answer = read()
        except EmbedPipelineError as error:
            if self._problems.get(database) != str(error):
                self._problems[database] = str(error)
                self._on_problem(f"The {database} cannot be read: {error}")
            return None
        self._problems.pop(database, None)
        return answer

    def _read_queue(self) -> QueueReading:
        jobs, limiter, model = self._services.jobs, self._services.limiter, self._services.model
        now, due, allowance = jobs.now(), jobs.next_due(model=model), limiter.allowance()
        return QueueReading(
            counters=jobs.counters.read(),
            status=self._status(),
            health=jobs.health.report(),
            switch=jobs.switch.read(),
            breakers=tuple(jobs.breakers.read(name) for name in (GRAPH, provider_of(model))),
            oldest_leasable_age=_not_negative(now - (due or now)),
            owners=len(jobs.live_owners()),
            has_stale=jobs.has_stale(),
            limit=limiter.limit,
            allowance=allowance,
            budget_back_in=_not_negative((allowance.back_at or now) - now),
        )

    def _count_coverage(self) -> Coverage:
        return self._services.graph.coverage(model=self._services.model)


def _not_negative(duration: timedelta) -> timedelta:
    return max(duration, timedelta(0))
