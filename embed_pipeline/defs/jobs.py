"""The Dagster jobs; all run in one process, because a process costs more than the work."""

from collections.abc import Callable
from typing import cast

import dagster as dg

from embed_pipeline.defs.control import force_embedding, pause_queue, resume_queue, retry_failed
from embed_pipeline.defs.history import prune_history
from embed_pipeline.defs.observing import daily_report, observe
from embed_pipeline.defs.ops import (
    RecoverConfig,
    cleanup_ttl,
    discover_missing_embeddings,
    embed_batch,
    lease_batch,
    recover_stale,
)
from embed_pipeline.defs.tags import run_tags


def _job(
    description: str, *, lane: str, max_runtime: int, config: dg.RunConfig | None = None
) -> Callable[[Callable[[], None]], dg.JobDefinition]:
    return dg.job(
        executor_def=dg.in_process_executor,
        tags=run_tags(lane, max_runtime=max_runtime),
        description=description,
        config=cast("dg.RunConfig", config),  # None is its default, which its type denies
    )


@_job(
    "Recover, lease a batch, embed it, and go on until the queue is empty.",
    lane="embed",
    max_runtime=600,
)
def embed_job() -> None:
    embed_batch(lease_batch(recover_stale()).leased)


@_job(
    "Return the jobs of vanished workers to pending.",
    lane="recovery",
    max_runtime=120,
    config=dg.RunConfig(ops={"recover_stale": RecoverConfig(strict=True)}),
)
def recover_stale_job() -> None:
    recover_stale()


@_job("Delete ended jobs past their retention.", lane="maintenance", max_runtime=1_800)
def cleanup_ttl_job() -> None:
    cleanup_ttl()


@_job("Find entities without a good vector and queue them.", lane="maintenance", max_runtime=1_800)
def discover_job() -> None:
    discover_missing_embeddings()


@_job(
    "Count exactly what is embedded and queued, write it on the assets, judge the checks.",
    lane="observation",
    max_runtime=1_800,
)
def observe_job() -> None:
    observe()


@_job(
    "The last day in tables: throughput per hour, latency percentiles, error patterns.",
    lane="observation",
    max_runtime=1_800,
)
def daily_report_job() -> None:
    daily_report()


@_job(
    "Delete this pipeline's old runs, and their files, from Dagster's own storage.",
    lane="maintenance",
    max_runtime=1_800,
)
def prune_history_job() -> None:
    prune_history()


@_job(
    "Embed one entity again, by name or key; or queue a number of entities that lack a vector.",
    lane="control",
    max_runtime=600,
)
def force_embedding_job() -> None:
    force_embedding()


@_job("Give failed jobs a fresh start.", lane="control", max_runtime=600)
def retry_failed_job() -> None:
    retry_failed()


@_job("Stop all leasing until the queue is resumed.", lane="control", max_runtime=300)
def pause_job() -> None:
    pause_queue()


@_job("Go on after a pause or a halt.", lane="control", max_runtime=300)
def resume_job() -> None:
    resume_queue()


JOBS: list[dg.JobDefinition] = [
    embed_job,
    recover_stale_job,
    cleanup_ttl_job,
    discover_job,
    observe_job,
    daily_report_job,
    prune_history_job,
    force_embedding_job,
    retry_failed_job,
    pause_job,
    resume_job,
]
