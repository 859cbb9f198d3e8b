"""All definitions for one environment; other code locations may merge them into their own."""

import dagster as dg

from embed_pipeline.defs.assets import Upstream, assets_for
from embed_pipeline.defs.checks import check_embeddings
from embed_pipeline.defs.jobs import JOBS
from embed_pipeline.defs.resources import resources_for
from embed_pipeline.defs.schedules import schedules_for
from embed_pipeline.defs.sensors import sensors_for
from embed_pipeline.settings import Environment, Settings


def build_definitions(settings: Settings, *, deps: Upstream = ()) -> dg.Definitions:
    """Sensors and schedules run by themselves, except in tests.

    `deps` are assets of yours that write entities: `entity_embeddings` then depends on them.
    """
    runs_itself = settings.environment is not Environment.TEST
    sensors = dg.DefaultSensorStatus.RUNNING if runs_itself else dg.DefaultSensorStatus.STOPPED
    schedules = (
        dg.DefaultScheduleStatus.RUNNING if runs_itself else dg.DefaultScheduleStatus.STOPPED
    )
    embedding = dg.Definitions(
        jobs=JOBS,
        assets=assets_for(settings, deps),
        asset_checks=[check_embeddings],
        sensors=sensors_for(settings.queue, status=sensors),
        schedules=schedules_for(schedules),
        resources=resources_for(settings),
        # No executor: every job names its own, and two that differ could not be merged.
    )
    if settings.reaper is None:
        return embedding
    # Its driver is an extra, so its package is imported only where it is asked for.
    from embed_pipeline.defs.reaper import reaper_definitions

    return dg.Definitions.merge(embedding, reaper_definitions(settings, sensors))
