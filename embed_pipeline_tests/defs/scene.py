"""The scene of the Dagster tests: definitions on their own files, and the stores behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.remote_origin import (
    RegisteredCodeLocationOrigin,
    RemoteJobOrigin,
    RemoteRepositoryOrigin,
)

from embed_pipeline import wiring
from embed_pipeline.defs.build import build_definitions
from embed_pipeline.defs.pipeline import PIPELINE, names_for
from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.domain.job import EntityUid, JobId, JobRequest
from embed_pipeline.ports.clock import SystemClock
from embed_pipeline.settings import Settings, load_settings
from embed_pipeline.usecases.entities.create import create_entities
from embed_pipeline.worker.context import Services
from embed_pipeline_tests.clocks import HOUR, FakeClock

MODEL = "mock/mock@64"


def settings_in(home: Path, **variables: str) -> Settings:
    return load_settings({"EMBED_ENV": "test", "EMBED_HOME": str(home)} | variables)


class Pipeline:
    """The definitions of one environment, and the stores they work on.

    Runs are stored in `instance`; without one each run gets its own.
    """

    def __init__(self, settings: Settings, instance: dg.DagsterInstance | None = None) -> None:
        self.settings, self._instance = settings, instance
        self.definitions = build_definitions(settings)
        self.services: Services = wiring.open_services(settings)

    def rebuild(self) -> None:
        """Build the definitions again, after a test has replaced something that they use."""
        self.definitions = build_definitions(self.settings)

    def change_queue(self, **values: Any) -> None:
        """Settings that no environment can have, to save the time that they would take."""
        self.settings = replace(self.settings, queue=replace(self.settings.queue, **values))
        self.rebuild()

    @property
    def pending(self) -> int:
        return self.services.jobs.get_queue_status().pending

    def add_run(
        self, instance: dg.DagsterInstance, status: dg.DagsterRunStatus, job: str = "embed_job"
    ) -> dg.DagsterRun:
        """A run of this pipeline."""
        tags = {PIPELINE: names_for(self.settings).pipeline}
        return add_run(instance, status, job, tags=tags)

    def close(self) -> None:
        self.services.jobs.close()
        self.services.graph.close()
        self.services.limiter.close()

    def create(self, *names: str) -> None:
        entities = [NewEntity(name=name) for name in names]
        create_entities(self.services.jobs, self.services.graph, entities, model=MODEL)

    def create_outside(self, *names: str) -> None:
        """As another program would: in the graph, unknown to the queue."""
        self.services.graph.create_entities([NewEntity(name=name) for name in names], model=MODEL)

    def abandon(self, *uids: str, owner: str = "vanished") -> tuple[JobId, ...]:
        """Jobs of a worker that vanished an hour ago."""
        with closing(
            wiring.open_job_store(self.settings, clock=FakeClock(SystemClock().now() - HOUR))
        ) as jobs:
            jobs.enqueue(
                [JobRequest(entity_uid=EntityUid(uid), model=MODEL, version="1") for uid in uids]
            )
            return jobs.lease(owner=owner, model=MODEL, limit=len(uids), token=owner).job_ids

    def run(
        self, job: str, config: Mapping[str, Mapping[str, Any]] | None = None, **more: Any
    ) -> dg.ExecuteInProcessResult:
        """`config` is by op."""
        ops = {name: {"config": values} for name, values in (config or {}).items()}
        options = {"instance": self._instance} | more
        return self.definitions.resolve_job_def(job).execute_in_process(
            run_config={"ops": ops}, **options
        )

    @contextmanager
    def tick(
        self, sensor: str, instance: dg.DagsterInstance, cursor: str | None = None
    ) -> Iterator[Any]:
        """One evaluation, with resources opened and closed as the daemon does."""
        resources = self.definitions.resources
        with dg.build_sensor_context(
            instance=instance, cursor=cursor, resources=dict(resources or {})
        ) as context:
            yield self.definitions.resolve_sensor_def(sensor).evaluate_tick(context)


def add_run(
    instance: dg.DagsterInstance,
    status: dg.DagsterRunStatus,
    job: str = "embed_job",
    *,
    repository: str = "repository",
    tags: Mapping[str, str] | None = None,
) -> dg.DagsterRun:
    """A run of any pipeline or, with its tag, of one."""
    location = RegisteredCodeLocationOrigin("embed_pipeline")
    origin = RemoteJobOrigin(RemoteRepositoryOrigin(location, repository), job)
    return instance.add_run(
        dg.DagsterRun(job_name=job, status=status, remote_job_origin=origin, tags=tags)
    )


def metadata_of(result: dg.ExecuteInProcessResult, op: str) -> dict[str, Any]:
    """The values that the UI shows about an op; a table is a list of its rows."""
    outputs = [
        event.step_output_data for event in result.events_for_node(op) if event.is_successful_output
    ]
    assert outputs, f"{op} has no output that could carry metadata"
    return {
        name: [record.data for record in value.records]
        if isinstance(value, dg.TableMetadataValue)
        else value.value
        for output in outputs
        for name, value in output.metadata.items()
    }


def steps_skipped(result: dg.ExecuteInProcessResult) -> list[str]:
    return [str(event.step_key) for event in result.all_events if event.is_step_skipped]


def sentence_of(result: dg.ExecuteInProcessResult, op: str) -> str:
    """What a person reads on an op that refused or failed by itself."""
    failure = result.failure_data_for_node(op)
    assert failure is not None
    assert failure.user_failure_data is not None
    return str(failure.user_failure_data.description)
