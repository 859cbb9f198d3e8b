"""The metrics as Prometheus sees them: names, help and labels; as text, or served to scrapes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest, start_http_server
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from embed_pipeline import __version__
from embed_pipeline.domain.control import SwitchState
from embed_pipeline.domain.health import HealthStatus
from embed_pipeline.domain.job import provider_of
from embed_pipeline.domain.partition import Coverage
from embed_pipeline.errors import RequestError
from embed_pipeline.interfaces.metrics.reader import QueueReading, Reader, Reading
from embed_pipeline.telemetry.latency import BOUNDS, Histogram, LatencyKind
from embed_pipeline.worker.report import STORED

COUNTERS = {
    "jobs_enqueued": "Jobs added to the queue.",
    "jobs_leased": "Jobs leased by workers.",
    "jobs_completed": "Jobs completed.",
    "jobs_retried": "Failed attempts that will be retried.",
    "jobs_failed": "Jobs that failed permanently.",
    "jobs_released": "Unstarted jobs returned to the queue.",
    "jobs_deferred": "Started jobs returned to the queue without counting an attempt.",
    "jobs_recovered": "Jobs returned to the queue after their lease had expired.",
    "jobs_cancelled": "Pending jobs deleted by a person.",
    "jobs_cleaned_up": "Finished jobs deleted after their retention.",
    **dict(STORED.values()),
}
"""These are 0 from the first scrape on: a rate needs a start."""

REAPER_COUNTERS = {
    "reaper_requeues": "Stuck SQL jobs requeued.",
    "reaper_failures": "Stuck SQL jobs failed because no attempt was left.",
    "reaper_sweeps": "Sweeps of the stuck-job reaper.",
    "reaper_scan_duration_ms": "Milliseconds spent in sweeps.",
}

GAUGES = {
    "up": ("Whether both databases could be read.", ()),
    "database_up": ("Whether this database could be read.", ("database",)),
    "info": ("Version and model, always 1.", ("version", "model")),
    "jobs": ("Jobs by status.", ("status",)),
    "oldest_leasable_age_seconds": ("Wait of the first job that may be leased, or 0.", ()),
    "lease_owners": ("Workers that hold a live lease.", ()),
    "stale_leases": ("1 while jobs with an expired lease wait for recovery.", ()),
    "queue_state": ("1 for the state of the queue.", ("state",)),
    "breaker_open": ("1 while workers wait for a provider or the graph.", ("breaker",)),
    "health_status": ("1 for the current health status.", ("status",)),
    "consecutive_failures": ("Consecutive failures.", ()),
    "success_ratio": ("Share of successes among the last 100 outcomes.", ()),
    "last_success_timestamp_seconds": ("When a job last completed.", ()),
    "budget_limit": ("The budget of one interval.", ("unit",)),
    "budget_left": ("What is left of the budget in the current window.", ("unit",)),
    "budget_back_seconds": ("Seconds until there is budget again, or 0.", ()),
    "entities": ("Valid entities of the graph.", ()),
    "entity_vectors": ("Valid entities by the state of their vector.", ("state",)),
    "collection_vectors": ("Nodes of a collection by state.", ("collection", "state")),
    "coverage_ratio": ("Share of entities with text that have a vector.", ("model",)),
    "work_left": ("Live jobs, and entities without a vector that have no job.", ()),
    "eta_seconds": ("Until nothing is left, at the rate of the last minutes.", ()),
    "audit_age_seconds": ("Since the end of the last complete audit.", ()),
    "audit_duration_seconds": ("How long the last complete audit took.", ()),
}
"""Help and label names; each is exported as `embed_pipeline_…`."""

LATENCIES: Mapping[LatencyKind, str] = {
    LatencyKind.REQUEST: "How long requests to the provider took, failed ones included.",
    LatencyKind.JOB: "From asking for an embedding until its vector was in the graph.",
    LatencyKind.WRITE: "How long transactions that write vectors took.",
    LatencyKind.SEARCH: "How long searches took, with the embedding of their query.",
}
"""Help; each is exported as the histogram `embed_pipeline_…_duration_seconds`."""

Value = float | int | bool
Samples = Mapping[str, Value]
Gauges = dict[str, Value | Samples | None]
"""By name; None is not exported."""


class StoreCollector(Collector):
    def __init__(self, reader: Reader, *, with_reaper: bool) -> None:
        self._reader = reader
        self._always = COUNTERS | (REAPER_COUNTERS if with_reaper else {})

    def describe(self) -> Iterable[Metric]:
        """Only names: without them, a scrape with `?name[]=` would get nothing."""
        yield from (_counter(name) for name in COUNTERS | REAPER_COUNTERS)
        yield from (_family(name) for name in GAUGES)
        yield from _histograms(())

    def collect(self) -> Iterable[Metric]:
        reading = self._reader.read()
        gauges = _state(reading)
        if reading.queue is not None:
            sums = dict.fromkeys(self._always, 0) | dict(reading.queue.counters)
            yield from (_counter(name, value) for name, value in sorted(sums.items()))
            yield from _histograms(reading.queue.latencies)
            gauges |= _queue(reading.queue) | _budget(reading.queue)
        if reading.coverage is not None:
            gauges |= _graph(reading.coverage, reading.model)
            yield _by_collection(reading.coverage)
        if reading.forecast is not None:
            eta = reading.forecast.eta
            gauges["work_left"] = reading.forecast.left
            gauges["eta_seconds"] = None if eta is None else eta.total_seconds()
        info = _family("info")
        info.add_metric([__version__, reading.model], 1)
        yield info
        yield from (_gauge(name, value) for name, value in gauges.items() if value is not None)


def registry_of(reader: Reader, *, with_reaper: bool = False) -> CollectorRegistry:
    """Has only what the stores know, no metrics of this process."""
    registry = CollectorRegistry()
    registry.register(StoreCollector(reader, with_reaper=with_reaper))
    return registry


def as_text(registry: CollectorRegistry) -> str:
    return generate_latest(registry).decode()


@contextmanager
def serving(registry: CollectorRegistry, *, host: str, port: int) -> Iterator[str]:
    """Serves scrapes in threads of its own while the block runs; yields the address.

    Port 0 means any free port.
    """
    try:
        server, thread = start_http_server(port, addr=host, registry=registry)
    except OSError as error:
        raise RequestError(f"Cannot listen at {host}:{port}: {error.strerror}.") from error
    try:
        yield f"http://{host}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _state(reading: Reading) -> Gauges:
    reached = {"queue": reading.queue is not None, "graph": reading.coverage is not None}
    return {"up": all(reached.values()), "database_up": reached}


def _queue(queue: QueueReading) -> Gauges:
    status, health = queue.status, queue.health
    last_success = health.last_success_at
    return {
        "jobs": {name: getattr(status, name) for name in status.__slots__},
        "oldest_leasable_age_seconds": queue.oldest_leasable_age.total_seconds(),
        "lease_owners": queue.owners,
        "stale_leases": queue.has_stale,
        "queue_state": {state.value: queue.switch.state is state for state in SwitchState},
        "breaker_open": {breaker.name: breaker.is_open for breaker in queue.breakers},
        "health_status": {status.value: health.status is status for status in HealthStatus},
        "consecutive_failures": health.consecutive_failures,
        "success_ratio": health.success_rate,
        "last_success_timestamp_seconds": last_success.timestamp() if last_success else None,
    }


def _budget(queue: QueueReading) -> Gauges:
    """Only if a budget is set."""
    if queue.limit is None:
        return {}
    limits = {"requests": queue.limit.requests, "tokens": queue.limit.tokens}
    left = {"requests": queue.allowance.requests, "tokens": queue.allowance.tokens}
    return {
        "budget_limit": {unit: value for unit, value in limits.items() if value is not None},
        "budget_left": {unit: value for unit, value in left.items() if value is not None},
        "budget_back_seconds": queue.budget_back_in.total_seconds(),
    }


def _graph(coverage: Coverage, model: str) -> Gauges:
    states = (
        *("embedded", "missing", "stale", "wrong_model", "wrong_dimension", "invalid"),
        *("nothing_to_embed", "excluded", "unseen"),
    )
    percent, audit = coverage.percent, coverage.audit
    return {
        "entities": coverage.entities,
        "entity_vectors": {name: getattr(coverage, name) for name in states},
        "coverage_ratio": None if percent is None else {model: percent / 100},
        "audit_age_seconds": audit.age if audit else None,
        "audit_duration_seconds": audit.duration if audit else None,
    }


def _by_collection(coverage: Coverage) -> Metric:
    family = _family("collection_vectors")
    for name, counts in coverage.collections.items():
        for state, value in counts.shown().items():
            family.add_metric([name, state], value)
    return family


def _counter(name: str, value: int = 0) -> Metric:
    # The reaper's counters keep the names of its own documentation.
    full = name if name.startswith("reaper_") else f"embed_pipeline_{name}"
    text = (COUNTERS | REAPER_COUNTERS).get(name, "A sum that the queue keeps.")
    return CounterMetricFamily(full, text, value=value)


def _histograms(stored: Iterable[Histogram]) -> Iterator[Metric]:
    families = {
        kind: HistogramMetricFamily(
            f"embed_pipeline_{kind}_duration_seconds", text, labels=("provider", "model")
        )
        for kind, text in LATENCIES.items()
    }
    for each in stored:
        bounds = [*(str(bound) for bound in BOUNDS[each.kind]), "+Inf"]
        labels = [provider_of(each.model), each.model]
        buckets = list(zip(bounds, accumulate(each.counts), strict=True))
        families[each.kind].add_metric(labels, buckets, each.seconds)
    yield from families.values()


def _gauge(name: str, value: Value | Samples) -> Metric:
    family = _family(name)
    for label, sample in value.items() if isinstance(value, Mapping) else [(None, value)]:
        family.add_metric([] if label is None else [label], float(sample))
    return family


def _family(name: str) -> GaugeMetricFamily:
    text, labels = GAUGES[name]
    return GaugeMetricFamily(f"embed_pipeline_{name}", text, labels=labels)
