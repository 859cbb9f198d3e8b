"""The assets, their figures, and when these are written.

`observe_job` writes them every five minutes. A run of `embed_job` does so only if nothing was
written for as long: the UI plots the last hundred events of an asset, which would cover minutes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import dagster as dg

from embed_pipeline.defs.op import Metadata
from embed_pipeline.defs.pipeline import (
    EMBEDDING_QUEUE,
    EMBEDDING_REPORT,
    ENTITY_EMBEDDINGS,
    Names,
    Pipeline,
)
from embed_pipeline.domain.partition import Coverage
from embed_pipeline.usecases.insight.coverage import (
    Progress,
    QueueState,
    progress_between,
    quick_coverage,
    read_queue_state,
)
from embed_pipeline.usecases.insight.forecast import Forecast, read_forecast
from embed_pipeline.usecases.insight.price import estimated_price
from embed_pipeline.worker.context import Services

COMPLETED, TOKENS = "completed in total", "tokens in total"
TOTALS = {"jobs_completed": COMPLETED, "provider_tokens": TOKENS}
"""Sums on every event, from which the next one computes what was done in between."""

NO_JOB_SINCE = "without a job since"
"""Carried from event to event, as long as entities lack both a vector and a job."""

OBSERVED_EVERY = timedelta(minutes=5)
REPEATED_AFTER = timedelta(hours=12)
"""Unchanged figures are materialized again after this time, so that the asset counts as fresh."""

FRESH = dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=25))

Upstream = Sequence[dg.AssetKey | dg.AssetSpec | dg.AssetsDefinition | str]


def observed_assets(pipeline: Pipeline) -> list[dg.AssetSpec]:
    """Those that only jobs write; `entity_embeddings` can also be materialized by itself."""
    names = pipeline.names
    return [
        dg.AssetSpec(
            names.asset(EMBEDDING_QUEUE),
            description="The queue of embedding jobs: how many wait, for how long, how fast they"
            f" are completed, and what that costs. Observed by `{names('observe_job')}`.",
            group_name=names("embeddings"),
            kinds={pipeline.settings.stores.queue.value},
        ),
        dg.AssetSpec(
            names.asset(EMBEDDING_REPORT),
            deps=[names.asset(EMBEDDING_QUEUE)],
            description="The last day in tables: throughput, latency, errors. Materialized by"
            f" `{names('daily_report_job')}`.",
            group_name=names("embeddings"),
            kinds={"pandas"},
            freshness_policy=FRESH,
        ),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Embeddings:
    """What was read about the vectors, and what earlier events of the asset add to it."""

    coverage: Coverage
    state: QueueState
    forecast: Forecast
    progress: Progress
    model: str
    no_job_since: datetime | None = None
    """Since when entities have lacked both a vector and a job; None if all have one."""

    @property
    def gap_age(self) -> timedelta:
        """How long the oldest gap has been open: a job that waits, or an entity without a job."""
        if not self.coverage.gaps:
            return timedelta(0)
        without = self.state.at - self.no_job_since if self.no_job_since else timedelta(0)
        return max(without, self.state.oldest_wait)

    def figures(self) -> Metadata:
        figures = _counts(self.coverage) | {
            "completed since the last observation": self.progress.completed,
            "throughput (per minute)": round(self.progress.per_minute, 1),
            "missing for (minutes)": round(self.gap_age / timedelta(minutes=1), 1),
            "left": self.forecast.left,
            "model": self.model,
            "dagster/row_count": self.coverage.embedded,
        }
        # As text, because their plots would push that of the coverage off the page.
        figures |= {shown: str(self.state.totals.get(name, 0)) for name, shown in TOTALS.items()}
        if self.coverage.percent is not None:
            figures["coverage (%)"] = float(self.coverage.percent)
        if self.forecast.eta is not None:
            figures["done in (minutes)"] = round(self.forecast.eta / timedelta(minutes=1), 1)
        if self.no_job_since is not None:
            figures[NO_JOB_SINCE] = self.no_job_since.isoformat(timespec="seconds")
        if self.coverage.audit is not None:
            figures["last audit"] = self.coverage.audit.at.isoformat(timespec="seconds")
            figures["last audit took (seconds)"] = self.coverage.audit.duration
        return figures | _price(self.model, self.progress)


def _counts(coverage: Coverage) -> Metadata:
    return {
        "entities": coverage.entities,
        "embedded": coverage.embedded,
        "missing": coverage.missing,
        "stale": coverage.stale,
        "of another model": coverage.wrong_model,
        "of a wrong dimension": coverage.wrong_dimension,
        "nothing to embed": coverage.nothing_to_embed,
        "excluded": coverage.excluded,
        "unseen": coverage.unseen,
        **_by_collection(coverage),
    }


def _by_collection(coverage: Coverage) -> Metadata:
    """Only where there are several: otherwise the numbers above say it."""
    if len(coverage.collections) < 2:
        return {}
    return {
        f"{state} in {name}": count
        for name, counts in coverage.collections.items()
        for state, count in counts.shown().items()
        if state in ("embedded", "missing")
    }


def _price(model: str, progress: Progress) -> Metadata:
    price = estimated_price(model, tokens=progress.tokens)
    shown = "price since the last observation (USD, estimated)"
    return {} if price is None else {shown: float(price)}


def read_embeddings(
    services: Services, instance: dg.DagsterInstance, names: Names, state: QueueState | None = None
) -> Embeddings:
    state = state or read_queue_state(services.jobs, model=services.model)
    coverage, last = quick_coverage(services), last_event(instance, names.asset(ENTITY_EMBEDDINGS))
    return Embeddings(
        coverage=coverage,
        state=state,
        forecast=read_forecast(services, state.status),
        progress=progress_since(last, state),
        model=services.model,
        no_job_since=_no_job_since(last, state) if coverage.gaps > state.queued else None,
    )


def embeddings_event(
    read: Embeddings, instance: dg.DagsterInstance, names: Names
) -> dg.AssetMaterialization | dg.AssetObservation:
    """A materialization if the figures have changed, so that downstream assets can follow.

    The page of an asset shows its last materialization, so that must not be older than the truth.
    """
    asset, figures = names.asset(ENTITY_EMBEDDINGS), read.figures()
    last = instance.get_latest_materialization_event(asset)
    if last is None or last.asset_materialization is None:
        changed = bool(read.progress.completed or read.coverage.embedded)
    else:
        shown, age = last.asset_materialization.metadata, _age(last.timestamp, read.state)
        counts = {name: shown[name].value for name in _counts(read.coverage) if name in shown}
        changed = counts != _counts(read.coverage) or age > REPEATED_AFTER
    event = dg.AssetMaterialization if changed or read.progress.completed else dg.AssetObservation
    return event(asset, metadata=figures)


def queue_figures(state: QueueState, progress: Progress, *, model: str) -> Metadata:
    health = state.health
    figures: Metadata = {
        "pending": state.status.pending,
        "processing": state.status.processing,
        "failed": state.status.failed,
        "parked": state.parked,
        "oldest wait (seconds)": round(state.oldest_wait.total_seconds(), 1),
        "completed since the last observation": progress.completed,
        "completed per minute": round(progress.per_minute, 1),
        "tokens since the last observation": progress.tokens,
        "consecutive failures": health.consecutive_failures,
        "state": state.switch.state.value,
        "health": "; ".join([health.status.value, *health.reasons]),
    }
    if health.success_rate is not None:
        figures["success rate of the last 100 (%)"] = 100.0 * health.success_rate
    totals = {shown: state.totals.get(name, 0) for name, shown in TOTALS.items()}
    return figures | _price(model, progress) | totals


@dataclass(frozen=True, slots=True)
class Event:
    timestamp: float
    metadata: Mapping[str, dg.MetadataValue]


def last_event(instance: dg.DagsterInstance, asset: dg.AssetKey) -> Event | None:
    observations = instance.fetch_observations(asset, limit=1).records
    materializations = instance.fetch_materializations(asset, limit=1).records
    events = [
        Event(record.timestamp, event.metadata)
        for record in (*observations, *materializations)
        if (event := record.asset_observation or record.asset_materialization)
    ]
    return max(events, key=lambda event: event.timestamp, default=None)


def is_observation_due(instance: dg.DagsterInstance, names: Names, now: datetime) -> bool:
    last = last_event(instance, names.asset(ENTITY_EMBEDDINGS))
    return last is None or now - datetime.fromtimestamp(last.timestamp, UTC) > OBSERVED_EVERY


def progress_since(last: Event | None, state: QueueState) -> Progress:
    """What was done since the last event of an asset; nothing before the first one."""
    if last is None:
        return Progress(completed=0, tokens=0, elapsed=timedelta(0))
    before = {
        name: int(str(last.metadata[shown].value))
        for name, shown in TOTALS.items()
        if shown in last.metadata
    }
    # A total that the last event does not have yet has not grown.
    before = {**{name: state.totals.get(name, 0) for name in TOTALS}, **before}
    return progress_between(before, state.totals, elapsed=_age(last.timestamp, state))


def _age(timestamp: float, state: QueueState) -> timedelta:
    return state.at - datetime.fromtimestamp(timestamp, UTC)


def _no_job_since(last: Event | None, state: QueueState) -> datetime:
    """The time that earlier events have carried on, or now."""
    if last is None or NO_JOB_SINCE not in last.metadata:
        return state.at
    return datetime.fromisoformat(str(last.metadata[NO_JOB_SINCE].value)).astimezone(UTC)
