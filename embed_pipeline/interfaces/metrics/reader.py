"""What one scrape reads, from the queue and from the graph independently."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, TypeVar

from embed_pipeline.domain.breaker import GRAPH, Breaker
from embed_pipeline.domain.control import Switch
from embed_pipeline.domain.health import HealthReport
from embed_pipeline.domain.job import QueueStatus, provider_of
from embed_pipeline.domain.partition import Coverage
from embed_pipeline.domain.window import Allowance, RateLimit
from embed_pipeline.errors import EmbedPipelineError
from embed_pipeline.ports.clock import Clock
from embed_pipeline.telemetry.latency import Histogram
from embed_pipeline.usecases.insight.coverage import quick_coverage
from embed_pipeline.usecases.insight.forecast import Forecast, read_forecast
from embed_pipeline.worker.context import Services

T = TypeVar("T")

COUNTS_EVERY = timedelta(seconds=30)

PATIENCE = timedelta(seconds=2)
"""A count that takes longer continues in the background; scrapes get the previous answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueReading:
    counters: Mapping[str, int]
    latencies: Sequence[Histogram]
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
    forecast: Forecast | None


class Reader:
    """Exact counts cost a scan, so they may be up to `counts_every` old; the rest is current.

    `on_problem` is called with the reason when a database cannot be read, once per outage.
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
        self._status = Cached(services.jobs.get_queue_status, for_=counts_every, clock=clock)
        self._forecast = Cached(
            lambda: read_forecast(services, self._status()), for_=counts_every, clock=clock
        )
        self._coverage = Cached(lambda: quick_coverage(services), for_=counts_every, clock=clock)

    def read(self) -> Reading:
        """Both databases in parallel, because a driver takes seconds to give up."""
        with ThreadPoolExecutor(max_workers=1) as beside:
            coverage = beside.submit(self._unless_down, "graph", self._coverage)
            queue = self._unless_down("queue", self._read_queue)
            counted = coverage.result()
            # It needs both databases, and has nothing to add about one that is down.
            is_up = queue is not None and counted is not None
            forecast = self._unless_down("graph", self._forecast) if is_up else None
            return Reading(
                model=self._services.model, queue=queue, coverage=counted, forecast=forecast
            )

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
            latencies=jobs.counters.latencies(model=model),
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


def _not_negative(duration: timedelta) -> timedelta:
    return max(duration, timedelta(0))


class Cached(Generic[T]):
    """An expensive answer that is recomputed at most every `for_`, in a thread of its own.

    A failure is cached too, so a database that is down is not asked more often. Concurrent
    scrapes share one computation; only the very first is waited for until it ends.
    """

    def __init__(self, ask: Callable[[], T], *, for_: timedelta, clock: Clock) -> None:
        self._ask, self._for, self._clock = ask, for_.total_seconds(), clock
        self._lock = threading.Lock()
        self._answered_at: float | None = None
        self._running: threading.Event | None = None
        """Set when the computation under way has ended."""
        self._answer: Callable[[], T] | None = None

    def __call__(self) -> T:
        with self._lock:
            if self._running is None and self._is_old():
                self._running = self._start()
            running, is_first = self._running, self._answer is None
        if running is not None:
            running.wait(None if is_first else PATIENCE.total_seconds())
        with self._lock:
            answer = self._answer
        assert answer is not None, "the computation failed with an unexpected error"
        return answer()

    def _is_old(self) -> bool:
        return self._answered_at is None or self._clock.monotonic() - self._answered_at >= self._for

    def _start(self) -> threading.Event:
        ended = threading.Event()
        # A daemon, so that the exporter can end during a walk over the graph.
        threading.Thread(target=self._compute, args=[ended], name="count", daemon=True).start()
        return ended

    def _compute(self, ended: threading.Event) -> None:
        try:
            answer = self._outcome()
            with self._lock:
                self._answer = answer
                # Counted from the end, so that a slow answer is used before it is old.
                self._answered_at = self._clock.monotonic()
        finally:
            with self._lock:
                self._running = None
            ended.set()

    def _outcome(self) -> Callable[[], T]:
        try:
            answer = self._ask()
        except EmbedPipelineError as error:
            failure = error

            def raise_failure() -> T:
                raise failure

            return raise_failure
        return lambda: answer
