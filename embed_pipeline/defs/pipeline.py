"""One pipeline of a code location: what its definitions are called, and how it knows its runs.

Several pipelines fit into one code location or one Dagster instance. They share the ops, whose
resources each job brings along; everything else is named with the pipeline's prefix.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from hashlib import sha256
from typing import Any

import dagster as dg

from embed_pipeline.defs.resources import resources_for
from embed_pipeline.errors import ConfigurationError
from embed_pipeline.settings import Environment, Settings

LANE = "embed_pipeline/lane"
"""The kind of work a run does. `dagster.yaml` limits how many runs of a lane run at once."""

LANES = ["embed", "recovery", "maintenance", "observation", "control", "reaper"]

PIPELINE = "embed_pipeline/pipeline"
"""Whose run it is. Sensors count, and prune_history deletes, only the runs of their pipeline."""

ENTITY_EMBEDDINGS = "entity_embeddings"
EMBEDDING_QUEUE = "embedding_queue"
EMBEDDING_REPORT = "embedding_report"
ASSETS = [ENTITY_EMBEDDINGS, EMBEDDING_QUEUE, EMBEDDING_REPORT]

AFTER_DRAIN = timedelta(minutes=6)
"""For the last batch of a run: requests that time out, vectors that wait for the graph."""

_DEFINITION = re.compile(
    r"\b(?:embed|recover_stale|discover|resume|retry_failed|force_embedding)_job\b"
    r"|\b(?:embed_queue|discover)_sensor\b"
)
"""Those that the sentences of checks name."""


Schedules = Mapping[str, bool | str]
"""By the name of the job without `_job`: false for no schedule, or another cron expression."""

SCHEDULED = ("audit", "cleanup_ttl", "daily_report", "discover", "observe", "prune_history")


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Ops get it as a resource."""

    prefix: str = ""
    pipeline: str = ""
    """The value of the tag on every run."""

    def __call__(self, name: str) -> str:
        """Of a job, sensor, schedule or resource."""
        return f"{self.prefix}_{name}" if self.prefix else name

    def asset(self, name: str) -> dg.AssetKey:
        return dg.AssetKey([self.prefix, name] if self.prefix else [name])

    def lane(self, lane: str) -> str:
        assert lane in LANES, "prune_history finds runs by their lane"
        return f"{self.prefix}/{lane}" if self.prefix else lane

    def tags(self, lane: str) -> dict[str, str]:
        return {LANE: self.lane(lane), PIPELINE: self.pipeline}

    def in_text(self, text: str) -> str:
        """The text with the prefix before every job and sensor that it names."""
        return _DEFINITION.sub(lambda found: self(found[0]), text)


def names_for(settings: Settings) -> Names:
    """The tag tells apart pipelines of one name on different queues: test and production, say."""
    stores, server = settings.stores, settings.stores.queue_server
    place = (server.uri, server.database, server.schema) if server else (settings.home.absolute(),)
    digest = sha256("\n".join(map(str, (stores.queue, *place))).encode()).hexdigest()[:8]
    name = settings.name or "embed_pipeline"
    return Names(prefix=settings.name, pipeline=f"{name}@{digest}")


@dataclass(frozen=True)
class Pipeline:
    settings: Settings
    schedules: Schedules = field(default_factory=dict)

    def __post_init__(self) -> None:
        if unknown := sorted(self.schedules.keys() - set(SCHEDULED)):
            there = ", ".join(SCHEDULED)
            raise ConfigurationError(
                [f"There is no schedule {name!r}; there are {there}." for name in unknown]
            )

    @cached_property
    def names(self) -> Names:
        return names_for(self.settings)

    @property
    def running(self) -> bool:
        """Whether sensors and schedules are on from the start."""
        return self.settings.environment is not Environment.TEST

    def cron(self, job: dg.JobDefinition, default: str) -> str | None:
        """When the job's schedule launches it; None if there is to be no schedule."""
        name = job.name.removeprefix(self.names("")).removesuffix("_job")
        chosen = self.schedules.get(name, True)
        return (default if chosen else None) if isinstance(chosen, bool) else chosen

    @property
    def embed_runtime(self) -> int:
        """Seconds after which Dagster ends an embed run: it may have to start and to wait first."""
        return int((self.settings.queue.run_for + AFTER_DRAIN).total_seconds())

    @cached_property
    def resources(self) -> dict[str, Any]:
        """For sensors, schedules, checks and people's own assets, under prefixed keys."""
        return resources_for(self.settings, self.names)

    @cached_property
    def job_resources(self) -> dict[str, dg.ResourceDefinition]:
        """For ops, under plain keys."""
        recovers = self.settings.queue.recovery_interval is not None
        return {
            **resources_for(self.settings),
            "automatic_recovery": dg.ResourceDefinition.hardcoded_resource(
                recovers, description="Whether embed_job recovers stale jobs before it leases."
            ),
            "names": dg.ResourceDefinition.hardcoded_resource(
                self.names, description="The names of this pipeline's jobs and assets."
            ),
            # A lease is of no use to a later run, so nothing is stored between ops.
            "mem_io_manager": dg.mem_io_manager,
        }

    def job(
        self,
        work: dg.OpDefinition | dg.GraphDefinition,
        name: str,
        *,
        lane: str,
        max_runtime: int = 1_800,
        config: dg.RunConfig | None = None,
        resources: dict[str, dg.ResourceDefinition] | None = None,
    ) -> dg.JobDefinition:
        """One process, because a process per op costs more than the work.

        Without `max_runtime` a run whose machine died would count as active forever.
        """
        graph = work if isinstance(work, dg.GraphDefinition) else _graph_of(work, self.names(name))
        return graph.to_job(
            name=self.names(name),
            config=config,
            executor_def=dg.in_process_executor,
            resource_defs=self.job_resources | (resources or {}),
            tags=self.names.tags(lane) | {"dagster/max_runtime": str(max_runtime)},
        )


def tag_own_run(
    context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext,
    names: Names,
    *,
    lane: str,
    max_runtime: int | None = None,
) -> None:
    """A run that the UI starts from the page of an asset lacks the tags of our jobs.

    A run that also does other work belongs to another pipeline and is left alone.
    """
    run = context.run
    checks = [check.asset_key for check in run.asset_check_selection or ()]
    selected = [*(run.asset_selection or ()), *checks]
    own = {names.asset(asset) for asset in ASSETS}
    if selected and own.issuperset(selected):
        limit = {"dagster/max_runtime": str(max_runtime)} if max_runtime else {}
        context.instance.add_run_tags(run.run_id, names.tags(lane) | limit)


def _graph_of(op: dg.OpDefinition, name: str) -> dg.GraphDefinition:
    """This op alone, with the op's description."""
    return dg.GraphDefinition(name, description=op.description, node_defs=[op])
