"""The assets, and the figures that `observe_job` writes on them every five minutes.

Only `observe_job` writes them. The UI plots the last hundred events of an asset: if every run added
one, a plot would cover minutes.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import dagster as dg

from embed_pipeline.defs.op import Metadata
from embed_pipeline.defs.pipeline import Pipeline
from embed_pipeline.domain.partition import Coverage
from embed_pipeline.usecases.insight.coverage import Progress, QueueState, progress_between
from embed_pipeline.usecases.insight.price import estimated_price

ENTITY_EMBEDDINGS = "entity_embeddings"
EMBEDDING_QUEUE = "embedding_queue"
EMBEDDING_REPORT = "embedding_report"

COMPLETED = "completed in total"
TOTALS = {"jobs_completed": COMPLETED, "provider_tokens": "tokens in total"}
"""Sums on every observation, from which the next one computes what was done in between."""

Upstream = Sequence[dg.AssetKey | dg.AssetSpec | dg.AssetsDefinition | str]


def assets_of(pipeline: Pipeline, deps: Upstream) -> list[dg.AssetSpec]:
    names, stores = pipeline.names, pipeline.settings.stores
    return [
        dg.AssetSpec(
            names.asset(ENTITY_EMBEDDINGS),
            deps=deps,
            description="The vectors of the graph's entities: what is embedded, missing and stale."
            f" `{names('observe_job')}` materializes it when vectors were written since the last"
            " observation, and only observes it otherwise.",
            group_name=names("embeddings"),
            kinds={stores.graph.value, pipeline.settings.provider.name.value},
        ),
        dg.AssetSpec(
            names.asset(EMBEDDING_QUEUE),
            description="The queue of embedding jobs: how many wait, for how long, how fast they"
            f" are completed, and what that costs. Observed by `{names('observe_job')}`.",
            group_name=names("embeddings"),
            kinds={stores.queue.value},
        ),
        dg.AssetSpec(
            names.asset(EMBEDDING_REPORT),
            deps=[names.asset(EMBEDDING_QUEUE)],
            description="The last day in tables: throughput, latency, errors. Materialized by"
            f" `{names('daily_report_job')}`.",
            group_name=names("embeddings"),
            kinds={"pandas"},
        ),
    ]


def coverage_figures(
    coverage: Coverage, state: QueueState, progress: Progress, *, model: str
) -> Metadata:
    figures: Metadata = {
        "entities": coverage.entities,
        "embedded": coverage.embedded,
        "missing": coverage.missing,
        "stale": coverage.stale,
        "of another model": coverage.wrong_model,
        "of a wrong dimension": coverage.wrong_dimension,
        "nothing to embed": coverage.nothing_to_embed,
        "excluded": coverage.excluded,
        "completed since the last observation": progress.completed,
        "model": model,
        # As text, because its plot would push that of the coverage off the page.
        COMPLETED: str(state.totals.get("jobs_completed", 0)),
    }
    if coverage.percent is not None:
        figures["coverage (%)"] = float(coverage.percent)
    if coverage.audit is not None:
        figures["last audit"] = coverage.audit.at.isoformat(timespec="seconds")
        figures["last audit took (seconds)"] = coverage.audit.duration
    return figures


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
    price = estimated_price(model, tokens=progress.tokens)
    if price is not None:
        figures["price since the last observation (USD, estimated)"] = float(price)
    if health.success_rate is not None:
        figures["success rate of the last 100 (%)"] = 100.0 * health.success_rate
    return figures | {shown: state.totals.get(name, 0) for name, shown in TOTALS.items()}


def progress_since_last_event(
    instance: dg.DagsterInstance, asset: dg.AssetKey, state: QueueState
) -> Progress:
    """What was done since the last event of an asset; nothing before the first one."""
    observations = instance.fetch_observations(asset, limit=1).records
    materializations = instance.fetch_materializations(asset, limit=1).records
    events = [
        (record.timestamp, event.metadata)
        for record in (*observations, *materializations)
        if (event := record.asset_observation or record.asset_materialization)
    ]
    if not events:
        return Progress(completed=0, tokens=0, elapsed=timedelta(0))
    timestamp, metadata = max(events, key=lambda event: event[0])
    elapsed = state.at - datetime.fromtimestamp(timestamp, UTC)
    return progress_between(_totals_in(metadata), state.totals, elapsed=elapsed)


def _totals_in(metadata: Mapping[str, dg.MetadataValue]) -> dict[str, int]:
    return {
        name: int(str(metadata[shown].value)) for name, shown in TOTALS.items() if shown in metadata
    }
