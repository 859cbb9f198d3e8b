"""The assets that carry numbers over time, and what is written on them.

`observe_job` writes on them every five minutes and nobody else: the UI draws the last hundred
events, so a line of every run would leave a graph of minutes.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg

from embed_pipeline.domain.embedding import Coverage
from embed_pipeline.settings import Settings
from embed_pipeline.usecases.insight.coverage import Progress, QueueState
from embed_pipeline.usecases.insight.price import estimated_price

ENTITY_EMBEDDINGS = dg.AssetKey("entity_embeddings")
EMBEDDING_QUEUE = dg.AssetKey("embedding_queue")
EMBEDDING_REPORT = dg.AssetKey("embedding_report")

COMPLETED = "completed in total"
TOTALS = {"jobs_completed": COMPLETED, "provider_tokens": "tokens in total"}
"""Sums that every observation carries, so that the next one can tell what was done since."""

Upstream = Sequence[dg.AssetKey | dg.AssetSpec | dg.AssetsDefinition | str]
Metadata = dict[str, Any]


def assets_for(settings: Settings, deps: Upstream) -> list[dg.AssetSpec]:
    kinds = {settings.stores.graph.value, settings.provider.name.value}
    return [
        dg.AssetSpec(
            ENTITY_EMBEDDINGS,
            deps=deps,
            description="The vectors of the graph's entities: what is embedded, missing and stale."
            " Materialized by `observe_job` when vectors were written since its last look,"
            " observed otherwise.",
            group_name="embeddings",
            kinds=kinds,
        ),
        dg.AssetSpec(
            EMBEDDING_QUEUE,
            description="The queue of embedding jobs: how much waits, for how long, how fast it"
            " moves, and what it costs. Observed by `observe_job`.",
            group_name="embeddings",
            kinds={settings.stores.queue.value},
        ),
        dg.AssetSpec(
            EMBEDDING_REPORT,
            deps=[EMBEDDING_QUEUE],
            description="The day in tables: throughput, latency, errors. Materialized by"
            " `daily_report_job`.",
            group_name="embeddings",
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
        "completed since the last look": progress.completed,
        "model": model,
        # For the next look, and as text: its plot would push that of coverage off the page.
        COMPLETED: str(state.totals.get("jobs_completed", 0)),
    }
    if coverage.percent is not None:
        figures["coverage (%)"] = float(coverage.percent)
    return figures


def queue_figures(state: QueueState, progress: Progress, *, model: str) -> Metadata:
    health = state.health
    figures: Metadata = {
        "pending": state.status.pending,
        "processing": state.status.processing,
        "failed": state.status.failed,
        "parked": state.parked,
        "oldest wait (seconds)": round(state.oldest_wait.total_seconds(), 1),
        "completed since the last look": progress.completed,
        "completed per minute": round(progress.per_minute, 1),
        "tokens since the last look": progress.tokens,
        "consecutive failures": health.consecutive_failures,
        "state": state.switch.state.value,
        "health": "; ".join([health.status.value, *health.reasons]),
    }
    price = estimated_price(model, tokens=progress.tokens)
    if price is not None:
        figures["price since the last look (USD, estimated)"] = float(price)
    if health.success_rate is not None:
        figures["success rate of the last 100 (%)"] = 100.0 * health.success_rate
    return figures | {shown: state.totals.get(name, 0) for name, shown in TOTALS.items()}


def last_totals(
    instance: dg.DagsterInstance, asset: dg.AssetKey
) -> tuple[Mapping[str, int], datetime] | None:
    """The sums of the last event of an asset, and when it was made; None before the first one."""
    events = [
        (record.timestamp, written.metadata)
        for records in (
            instance.fetch_observations(asset, limit=1).records,
            instance.fetch_materializations(asset, limit=1).records,
        )
        for record in records
        if (written := record.asset_observation or record.asset_materialization)
    ]
    if not events:
        return None
    made_at, metadata = max(events, key=lambda event: event[0])
    totals = {
        name: int(str(metadata[shown].value)) for name, shown in TOTALS.items() if shown in metadata
    }
    return totals, datetime.fromtimestamp(made_at, UTC)


NOTHING_YET = Progress(completed=0, tokens=0, elapsed=timedelta(0))
