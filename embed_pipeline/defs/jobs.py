"""The Dagster jobs; all run in one process, because a process costs more than the work."""

import dagster as dg

from embed_pipeline.defs.ops import (
    RecoverConfig,
    cleanup_ttl,
    discover_missing_embeddings,
    embed_batch,
    lease_batch,
    recover_stale,
)

LANE = "embed_pipeline/lane"
EMBED_MAX_RUNTIME = 600


def _tags(lane: str, max_runtime: int) -> dict[str, str]:
    """Without `max_runtime` a run whose machine died would count as active for ever."""
    return {LANE: lane, "dagster/max_runtime": str(max_runtime)}


@dg.job(
    executor_def=dg.in_process_executor,
    tags=_tags("embed", EMBED_MAX_RUNTIME),
    description="Recover, lease a batch, embed it, and go on until the queue is empty.",
)
def embed_job() -> None:
    embed_batch(lease_batch(recover_stale()))


@dg.job(
    executor_def=dg.in_process_executor,
    tags=_tags("recovery", 300),
    config=dg.RunConfig(ops={"recover_stale": RecoverConfig(strict=True)}),
    description="Return the jobs of vanished workers to pending.",
)
def recover_stale_job() -> None:
    recover_stale()


@dg.job(
    executor_def=dg.in_process_executor,
    tags=_tags("maintenance", 1_800),
    description="Delete ended jobs past their retention.",
)
def cleanup_ttl_job() -> None:
    cleanup_ttl()


@dg.job(
    executor_def=dg.in_process_executor,
    tags=_tags("maintenance", 1_800),
    description="Find entities without a good vector and queue them.",
)
def discover_job() -> None:
    discover_missing_embeddings()


JOBS = [embed_job, recover_stale_job, cleanup_ttl_job, discover_job]
