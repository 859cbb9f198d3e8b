"""The whole system alive: `dagster dev` with its sensors on, a provider of ours, and the stores."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.scheduler.instigation import InstigatorTick

from embed_pipeline import wiring
from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.settings import load_settings
from embed_pipeline.usecases.entities.create import create_entities
from embed_pipeline_tests.contracts.entity_store.scene import coverage_of
from embed_pipeline_tests.defs.commands import Homes
from embed_pipeline_tests.defs.dev_server import DevServer, dev_server, within
from embed_pipeline_tests.openai_server import OpenAIServer

PID = re.compile(r"\(pid: (\d+)\)")


class Live:
    """Settings are scaled: leases of seconds, so that a test sees them end."""

    def __init__(self, folder: Path, provider: OpenAIServer, **stores: str) -> None:
        self.homes, self.provider = Homes.below(folder), provider
        self.variables = {
            "EMBED_ENV": "local",
            "EMBEDDING_PROVIDER": "openai",
            "OPENAI_API_KEY": "sk-for-the-loopback-server",
            "OPENAI_BASE_URL": provider.base_url,
            "EMBEDDING_DIMENSIONS": "8",
            "EMBEDDING_TIMEOUT": "6000",
            "EMBEDDING_RATE_LIMIT_TOKENS": "100000",
            "EMBED_JOB_LOCK_DURATION": "15000",
            "EMBED_JOB_HEARTBEAT_INTERVAL": "2000",
            "EMBED_JOB_RECOVERY_INTERVAL": "5000",
            **stores,
        }
        settings = load_settings(self.homes.environment(**self.variables))
        wiring.initialise_stores(settings)
        self.services = wiring.open_services(settings)

    @property
    def log(self) -> Path:
        """What Dagster's processes write."""
        return self.homes.dagster / "dev.log"

    def close(self) -> None:
        self.services.jobs.close()
        self.services.graph.close()
        self.services.limiter.close()
        self.services.provider.close()

    @contextmanager
    def dagster(self) -> Iterator[DevServer]:
        with dev_server(self.homes, **self.variables) as server:
            yield server

    def create(self, names: Iterable[str]) -> None:
        entities = [NewEntity(name=name) for name in names]
        create_entities(
            self.services.jobs, self.services.graph, entities, model=self.services.model
        )

    def wait_until_all_is_embedded(self, seconds: float) -> None:
        within(seconds, self._is_complete, self.explain)
        assert self.services.jobs.get_queue_status().failed == 0, self.explain()

    def wait_until_a_run_holds_jobs(self, seconds: float = 60) -> str:
        """The run's id."""
        within(seconds, lambda: bool(self.services.jobs.live_owners()), self.explain)
        (owner,) = self.services.jobs.live_owners()
        return owner

    def slow_provider(self, seconds: float) -> None:
        self.provider.latency = timedelta(seconds=seconds)

    def runs(self, job: str = "embed_job") -> list[dg.DagsterRun]:
        with dg.DagsterInstance.from_config(str(self.homes.dagster)) as instance:
            return list(instance.get_runs(dg.RunsFilter(job_name=job)))

    def status_of(self, run_id: str) -> dg.DagsterRunStatus:
        (run,) = [run for run in self.runs() if run.run_id == run_id]
        return run.status

    def pid_of(self, run_id: str) -> int:
        return int(PID.findall(self.log_of(run_id))[0])

    def log_of(self, run_id: str) -> str:
        with dg.DagsterInstance.from_config(str(self.homes.dagster)) as instance:
            return "\n".join(str(entry.message) for entry in instance.all_logs(run_id))

    def last_tick(self, sensor: str) -> InstigatorTick | None:
        with dg.DagsterInstance.from_config(str(self.homes.dagster)) as instance:
            for state in instance.all_instigator_state():
                if state.instigator_name == sensor:
                    found = instance.get_ticks(state.instigator_origin_id, state.selector_id)
                    return next(iter(found), None)
        return None

    def explain(self) -> str:
        jobs = self.services.jobs
        state: list[Any] = [jobs.get_queue_status(), jobs.health.report(), jobs.live_owners()]
        return "\n".join(map(str, state)) + self.log.read_text()[-3_000:]

    def _is_complete(self) -> bool:
        status = self.services.jobs.get_queue_status()
        if status.pending or status.processing:
            return False  # cheaper than counting the graph
        return coverage_of(self.services.graph, model=self.services.model).percent == 100


@contextmanager
def live_system(folder: Path, **stores: str) -> Iterator[Live]:
    """On SQLite unless the variables name other stores."""
    with OpenAIServer(keep_texts=False) as provider:
        live = Live(folder, provider, **stores)
        try:
            yield live
        finally:
            live.close()
