"""Embedding: `embed_job`, the sensor that launches it, and the recovery of abandoned jobs."""

import dagster as dg

from embed_pipeline.defs.embed.jobs import embed_job, recover_stale_job
from embed_pipeline.defs.embed.queue_sensor import embed_queue_sensor_for
from embed_pipeline.defs.embed.recovery_sensors import recovery_sensors_for
from embed_pipeline.settings import QueueSettings

__all__ = ["embed_definitions", "embed_job", "recover_stale_job"]


def embed_definitions(queue: QueueSettings, *, running: bool) -> dg.Definitions:
    """Without a recovery interval there are no recovery sensors."""
    recovery = (
        recovery_sensors_for(queue.recovery_interval, running) if queue.recovery_interval else []
    )
    return dg.Definitions(
        jobs=[embed_job, recover_stale_job],
        sensors=[embed_queue_sensor_for(queue.max_runs, running), *recovery],
    )
