"""`EmbedPipelineComponent`: the whole pipeline from a few lines of YAML, for `dg` projects."""

from collections.abc import Mapping
from typing import Annotated, Any

import dagster as dg
from dagster.components.component_scaffolding import scaffold_component
from pydantic import Field, create_model

from embed_pipeline.defs.build import build_definitions
from embed_pipeline.defs.pipeline import SCHEDULED
from embed_pipeline.settings import load_settings
from embed_pipeline.settings.load import DECLARED, SECRETS
from embed_pipeline.telemetry import emit

ATTRIBUTES = {"name": "EMBED_NAME", "run_seconds": "EMBED_RUN_SECONDS"}
"""Settings that have an attribute of their own."""

SECRET = "A secret: write {{ env.NAME }}, never the value."  # noqa: S105

PipelineSettings = create_model(  # type: ignore[call-overload]
    "PipelineSettings",
    __base__=dg.Model,
    __doc__="Variables of the configuration, by their names.",
    **{
        variable: (
            str | int | float | bool | None,
            Field(
                default=None,
                description=f"{declared.meaning} {SECRET}"
                if variable in SECRETS
                else f"{declared.meaning} Allowed: {declared.kind.allowed}.",
            ),
        )
        for variable, declared in DECLARED.items()
        if variable not in ATTRIBUTES.values()
    },
)
"""Typed, so that `dg check yaml` and editors know every variable and refuse a misspelt one."""


PipelineSchedules = create_model(  # type: ignore[call-overload]
    "PipelineSchedules", __base__=dg.Model, **dict.fromkeys(SCHEDULED, (bool | str, True))
)


def _given(context: dg.ResolutionContext, model: dg.Model) -> Mapping[str, Any]:
    """What the YAML says, with its templates filled in."""
    return context.resolve_value(model.model_dump(exclude_unset=True))


class EmbedPipelineScaffolder(dg.Scaffolder[Any]):
    def scaffold(self, request: dg.ScaffoldRequest[Any]) -> None:
        """The folder's name becomes the prefix, so that a second one does not clash."""
        scaffold_component(request, {"name": request.target_path.name})


@dg.scaffold_with(EmbedPipelineScaffolder)
class EmbedPipelineComponent(dg.Component, dg.Resolvable, dg.Model):
    """Keeps every entity of a knowledge graph embedded: queue, worker, sensors, assets, checks.

    Settings that are not given here come from the environment and `.env`.
    """

    name: Annotated[
        str | None,
        Field(description="The prefix of jobs, assets, resources, sensors and schedules."),
    ] = None
    settings: Annotated[
        Mapping[str, Any],
        dg.Resolver(
            _given,
            model_field_type=PipelineSettings,
            description="Variables of the configuration; they win over the environment.",
        ),
    ] = Field(default_factory=dict, repr=False)  # secrets are among them
    deps: Annotated[
        list[dg.ResolvedAssetKey],
        Field(description="Your assets that write entities: entity_embeddings depends on them."),
    ] = Field(default_factory=list)
    schedules: Annotated[
        Mapping[str, bool | str],
        dg.Resolver(
            _given,
            model_field_type=PipelineSchedules,
            description="For each: true, false to leave it out, or a cron expression (UTC).",
        ),
    ] = Field(default_factory=dict)
    run_seconds: Annotated[
        int | None,
        Field(description="How long a run continues to lease new jobs (EMBED_RUN_SECONDS)."),
    ] = None

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        settings = load_settings(over=self._variables())
        for note in settings.notes:
            emit("settings.noted", message=note)
        return build_definitions(settings, deps=self.deps, schedules=self.schedules)

    def _variables(self) -> dict[str, str]:
        given = {**self.settings}
        for attribute, variable in ATTRIBUTES.items():
            given[variable] = getattr(self, attribute)
        return {name: _as_text(value) for name, value in given.items() if value is not None}


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
