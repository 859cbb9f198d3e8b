"""A reading as Prometheus sees it: names, help and labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from prometheus_client.core import CollectorRegistry, CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from embed_pipeline import __version__
from embed_pipeline.domain.embedding import Coverage
from embed_pipeline.domain.health import HealthStatus
from embed_pipeline.domain.switch import SwitchState
from embed_pipeline.interfaces.metrics.reading import QueueReading, Reader, Reading

COUNTERS = {
    "jobs_enqueued": "Jobs put into the queue.",
    "jobs_leased": "Jobs taken by workers.",
    "jobs_completed": "Jobs that ended well.",
    "jobs_retried": "Attempts that failed and are tried again.",
    "jobs_failed": "Jobs that failed for good.",
    "jobs_released": "Unstarted jobs given back.",
    "jobs_deferred": "Started jobs given back without an attempt.",
    "jobs_recovered": "Jobs returned from vanished workers.",
    "jobs_cancelled": "Pending jobs deleted by a person.",
    "jobs_cleaned_up": "Ended jobs deleted past their retention.",
    "vectors_embedded": "Vectors made by the provider.",
    "vectors_reused": "Vectors reused, so not paid for again.",
    "provider_requests": "Requests sent to the provider.",
    "provider_tokens": "Tokens the provider was sent: what it charges for.",
    "inputs_truncated": "Texts cut because they were longer than the model takes.",
}
"""Those that are there from the first scrape, at 0: a rate needs a beginning."""

REAPER_COUNTERS = {
    "reaper_requeues": "Stuck SQL jobs given back.",
    "reaper_failures": "Stuck SQL jobs failed, no attempt being left.",
    "reaper_sweeps": "Sweeps of the stuck-job reaper.",
    "reaper_scan_duration_ms": "Milliseconds spent in sweeps.",
}

Value = float | int | bool
Samples = Mapping[str, Value]


class StoreCollector(Collector):
    def __init__(self, reader: Reader, *, with_reaper: bool) -> None:
        self._reader = reader
        self._always = COUNTERS | (REAPER_COUNTERS if with_reaper else {})

    def collect(self) -> Iterable[Metric]:
        reading = self._reader.read()
        yield from _state(reading)
        if reading.queue is not None:
            yield from self._counters(reading.queue.counters)
            yield from _queue(reading.queue)
        if reading.coverage is not None:
            yield from _graph(reading.coverage, reading.model)

    def _counters(self, stored: Mapping[str, int]) -> Iterator[Metric]:
        sums = dict.fromkeys(self._always, 0) | dict(stored)
        for name, value in sorted(sums.items()):
            told = (COUNTERS | REAPER_COUNTERS).get(name, "A sum that the queue keeps.")
            # The reaper's keep the name under which its own documentation knows them.
            full = name if name.startswith("reaper_") else f"embed_pipeline_{name}"
            yield CounterMetricFamily(full, told, value=value)


def registry_of(reader: Reader, *, with_reaper: bool = False) -> CollectorRegistry:
    """Nothing of this process is in it: it only tells what the stores know."""
    registry = CollectorRegistry()
    registry.register(StoreCollector(reader, with_reaper=with_reaper))
    return registry


def _state(reading: Reading) -> Iterator[Metric]:
    reached = {"queue": reading.queue is not None, "graph": reading.coverage is not None}
    yield _gauge("up", "Whether both databases could be read.", all(reached.values()))
    yield _gauges("database_up", "Whether this database could be read.", "database", reached)
    info = GaugeMetricFamily(
        "embed_pipeline_info", "Version and model, always 1.", labels=["version", "model"]
    )
    info.add_metric([__version__, reading.model], 1)
    yield info


def _queue(queue: QueueReading) -> Iterator[Metric]:
    status, health = queue.status, queue.health
    counts = {name: getattr(status, name) for name in status.__slots__}
    yield _gauges("jobs", "Jobs by status.", "status", counts)
    yield _gauge(
        "oldest_leasable_age_seconds",
        "How long the first job that may be leased has been waiting; 0 without one.",
        queue.oldest_leasable_age.total_seconds(),
    )
    yield _gauge("lease_owners", "Workers that hold a live lease.", queue.owners)
    yield _gauge("stale_leases", "1 while jobs of vanished workers wait.", queue.has_stale)
    yield _gauges(
        "queue_state",
        "1 for the state the queue is in.",
        "state",
        {state.value: queue.switch.state is state for state in SwitchState},
    )
    yield _gauges(
        "breaker_open",
        "1 while everybody waits for a provider or the graph to answer again.",
        "breaker",
        {breaker.name: breaker.is_open for breaker in queue.breakers},
    )
    yield _gauges(
        "health_status",
        "1 for the state that health is in.",
        "status",
        {status.value: health.status is status for status in HealthStatus},
    )
    yield _gauge("consecutive_failures", "Failures in a row.", health.consecutive_failures)
    if health.success_rate is not None:
        yield _gauge("success_ratio", "Successes among the last 100 ends.", health.success_rate)
    if health.last_success_at is not None:
        yield _gauge(
            "last_success_timestamp_seconds",
            "When a job last ended well.",
            health.last_success_at.timestamp(),
        )
    yield from _budget(queue)


def _budget(queue: QueueReading) -> Iterator[Metric]:
    """Only where a budget is set."""
    if queue.limit is None:
        return
    limits = {"requests": queue.limit.requests, "tokens": queue.limit.tokens}
    left = {"requests": queue.allowance.requests, "tokens": queue.allowance.tokens}
    yield _gauges("budget_limit", "The budget of one interval.", "unit", _given(limits))
    yield _gauges("budget_left", "What is left of it in the window now.", "unit", _given(left))
    yield _gauge(
        "budget_back_seconds",
        "Seconds until there is budget again; 0 while there is some.",
        queue.budget_back_in.total_seconds(),
    )


def _graph(coverage: Coverage, model: str) -> Iterator[Metric]:
    yield _gauge("entities", "Valid entities of the graph.", coverage.entities)
    defects = ("missing", "stale", "wrong_model", "wrong_dimension")
    states = {name: getattr(coverage, name) for name in ("embedded", *defects)}
    yield _gauges("entity_vectors", "Valid entities by the state of their vector.", "state", states)
    if coverage.percent is not None:
        yield _gauges(
            "coverage_ratio",
            "The share of valid entities with a good vector.",
            "model",
            {model: coverage.percent / 100},
        )


def _given(values: Mapping[str, Value | None]) -> Samples:
    return {name: value for name, value in values.items() if value is not None}


def _gauge(name: str, told: str, value: Value) -> Metric:
    return GaugeMetricFamily(f"embed_pipeline_{name}", told, value=float(value))


def _gauges(name: str, told: str, label: str, values: Samples) -> Metric:
    family = GaugeMetricFamily(f"embed_pipeline_{name}", told, labels=[label])
    for key, value in values.items():
        family.add_metric([key], float(value))
    return family
