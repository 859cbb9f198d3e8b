"""All definitions for one environment; other code locations may merge them into their own."""

import dagster as dg

from embed_pipeline.defs.control import control_definitions
from embed_pipeline.defs.embed import embed_definitions
from embed_pipeline.defs.maintenance import maintenance_definitions
from embed_pipeline.defs.observe import observe_definitions
from embed_pipeline.defs.observe.assets import Upstream
from embed_pipeline.defs.resources import resources_for
from embed_pipeline.settings import Environment, Settings


def build_definitions(settings: Settings, *, deps: Upstream = ()) -> dg.Definitions:
    """Sensors and schedules are running from the start, except in tests.

    `deps` are your own assets that write entities: `entity_embeddings` then depends on them.
    """
    running = settings.environment is not Environment.TEST
    parts = [
        embed_definitions(settings.queue, running=running),
        observe_definitions(settings, deps, running=running),
        control_definitions(),
        maintenance_definitions(running=running),
        # No executor: every job names its own, and two different ones could not be merged.
        dg.Definitions(resources=resources_for(settings)),
    ]
    if settings.reaper is not None:
        # Imported only if needed, because its database driver is an optional extra.
        from embed_pipeline.defs.reaper import reaper_definitions

        parts.append(reaper_definitions(settings, running=running))
    return dg.Definitions.merge(*parts)
