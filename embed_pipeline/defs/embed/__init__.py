"""Embedding: `entity_embeddings`, `embed_job` and its sensor, recovery of abandoned jobs."""

import dagster as dg

from embed_pipeline.defs.assets import Upstream
from embed_pipeline.defs.embed.asset import entity_embeddings_of
from embed_pipeline.defs.embed.jobs import embed_job_of, recover_stale_job_of
from embed_pipeline.defs.embed.queue_sensor import embed_queue_sensor_of
from embed_pipeline.defs.embed.recovery_sensors import recovery_sensors_of
from embed_pipeline.defs.pipeline import Pipeline

__all__ = ["embed_definitions"]


def embed_definitions(pipeline: Pipeline, deps: Upstream) -> dg.Definitions:
    """Without a recovery interval there are no recovery sensors."""
    embed_job, recover_stale_job = embed_job_of(pipeline), recover_stale_job_of(pipeline)
    interval = pipeline.settings.queue.recovery_interval
    recovery = (
        recovery_sensors_of(pipeline, embed_job, recover_stale_job, interval) if interval else []
    )
    return dg.Definitions(
        assets=[entity_embeddings_of(pipeline, deps)],
        jobs=[embed_job, recover_stale_job],
        sensors=[embed_queue_sensor_of(pipeline, embed_job), *recovery],
    )
