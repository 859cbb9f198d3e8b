"""All definitions for one environment; other code locations may merge them into their own."""

import dagster as dg

from embed_pipeline.defs.assets import Upstream
from embed_pipeline.defs.control import control_definitions
from embed_pipeline.defs.embed import embed_definitions
from embed_pipeline.defs.maintenance import maintenance_definitions
from embed_pipeline.defs.observe import observe_definitions
from embed_pipeline.defs.pipeline import Pipeline, Schedules
from embed_pipeline.settings import Settings, named
from embed_pipeline.telemetry import give_sentences_to_hosts


def build_definitions(
    settings: Settings,
    *,
    name: str | None = None,
    deps: Upstream = (),
    schedules: Schedules | None = None,
) -> dg.Definitions:
    """Sensors and schedules are running from the start, except in tests.

    `name` is the prefix of everything that Dagster shows, for several pipelines in one code
    location or one instance; by default EMBED_NAME. `deps` are your own assets that write entities:
    `entity_embeddings` then depends on them. `schedules` replaces or leaves out single ones, by the
    name of the job without `_job`: `{"observe": "0 * * * *", "prune_history": False}`.
    """
    give_sentences_to_hosts()
    chosen = schedules or {}
    pipeline = Pipeline(settings if name is None else named(settings, name), chosen)
    parts = [
        embed_definitions(pipeline, deps),
        observe_definitions(pipeline),
        control_definitions(pipeline),
        maintenance_definitions(pipeline),
        # No executor: every job names its own, and two different ones could not be merged.
        dg.Definitions(resources=pipeline.resources),
    ]
    if settings.reaper is not None:
        # Imported only if needed, because its database driver is an optional extra.
        from embed_pipeline.defs.reaper import reaper_definitions

        parts.append(reaper_definitions(pipeline, settings.reaper))
    return dg.Definitions.merge(*parts)
