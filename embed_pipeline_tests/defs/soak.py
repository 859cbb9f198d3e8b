"""Days of sensor ticks in a fraction of their time: `make soak`.

The daemon's own evaluation runs here on a real instance, by a clock that is moved on from round to
round; ticks, events and runs are stored as in life, and entities arrive that the sensor's runs
embed. Four simulated days pass, however many ticks are asked for, so that every retention (a day,
for skipped ticks and, here, for runs) is over several times: what is still growing in the second
half grows forever. It fails as well when nothing happened that could grow: a tick that failed, no
tick, no run, an entity that was not embedded.

Ticks are those of all five sensors together: a round of the daemon makes five of them, and 17 280
are as many as one sensor makes in a day of rounds five seconds apart.

    python -m embed_pipeline_tests.defs.soak --ticks 17280
"""

from __future__ import annotations

import argparse
import gc
import os
import shutil
import sqlite3
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from unittest import mock

import dagster as dg
import sqlalchemy as sa
import yaml  # type: ignore[import-untyped]
from alembic.config import Config
from alembic.script import ScriptDirectory
from dagster._core.storage.runs.schema import RunsTable
from dagster._core.storage.runs.sql_run_storage import SqlRunStorage

from embed_pipeline import wiring
from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.ports.clock import SystemClock
from embed_pipeline.settings import load_settings
from embed_pipeline.usecases.entities.create import create_entities
from embed_pipeline.worker.context import Services
from embed_pipeline_tests.contracts.entity_store.scene import coverage_of
from embed_pipeline_tests.defs.commands import ROOT
from embed_pipeline_tests.defs.daemon import SensorDaemon, sensor_daemon
from embed_pipeline_tests.defs.soak_outcome import HEAD, Outcome, Sample, problems_in

SIMULATED = timedelta(days=4)
SENSORS = 5
SAMPLES = 16
"""How often the sizes are taken, at most once in a round."""
ENTITY_EVERY = 25
"""Rounds between two new entities, each of which is worth a run; the first comes at once."""


class Soak:
    def __init__(self, folder: Path, instance: dg.DagsterInstance, daemon: SensorDaemon) -> None:
        from embed_pipeline.definitions import defs

        self._folder, self._instance, self._daemon, self._defs = folder, instance, daemon, defs
        self._begun = daemon.now
        self._entities = 0
        self._embed_runs: set[str] = set()

    def run(self, ticks: int) -> Outcome:
        rounds = max(2, ticks // SENSORS)
        step, samples = SIMULATED / rounds, []
        hours = 0
        for number in range(1, rounds + 1):
            if number % ENTITY_EVERY == 1:
                self._arrive()
            self._daemon.round(step)
            self._date_runs()
            if (now := int((self._daemon.now - self._begun) / timedelta(hours=1))) > hours:
                hours = now
                self._hour(hours)
            if number % max(1, rounds // SAMPLES) == 0:
                samples.append(self._sample(number))
                say(str(samples[-1]))
        return self._outcome(samples)

    def _outcome(self, samples: list[Sample]) -> Outcome:
        with opened_tools() as services:
            coverage = coverage_of(services.graph, model=services.model)
        return Outcome(
            samples=samples,
            failed_ticks=rows(self._ticks, "job_ticks", "status = 'FAILURE'"),
            embed_runs=len(self._embed_runs),
            entities=self._entities,
            embedded=coverage.embedded,
        )

    def _arrive(self) -> None:
        self._entities += 1
        new = [NewEntity(name=f"entity {self._entities}")]
        with opened_tools() as services:
            create_entities(services.jobs, services.graph, new, model=services.model)

    def _hour(self, hour: int) -> None:
        """What the schedules would launch, less often; runs are counted before they are pruned."""
        self._embed_runs.update(self._instance.get_run_ids(dg.RunsFilter(job_name="embed_job")))
        self._execute("observe_job", {})
        if hour % 6 == 0:
            self._execute("cleanup_ttl_job", {"cleanup_ttl": {"older_than_days": 1}})
            self._execute("prune_history_job", {"prune_history": {"older_than_days": 1}})
        self._date_runs()

    def _execute(self, job: str, config: dict[str, dict[str, int]]) -> None:
        ops = {op: {"config": values} for op, values in config.items()}
        self._defs.resolve_job_def(job).execute_in_process(
            run_config={"ops": ops}, instance=self._instance
        )

    def _date_runs(self) -> None:
        """Dagster dates some of a run by the real clock, which is days ahead of ours."""
        runs = self._instance.run_storage
        assert isinstance(runs, SqlRunStorage)
        now = self._daemon.now.replace(tzinfo=None)
        with runs.connect() as connection:
            connection.execute(
                sa.update(RunsTable)
                .where(RunsTable.c.update_timestamp > now + timedelta(hours=12))
                .values(update_timestamp=now)
            )

    def _sample(self, rounds: int) -> Sample:
        gc.collect()
        stored = [path for path in (self._folder / "dagster").rglob("*") if path.is_file()]
        logs = (self._folder / "dagster" / "history" / "runs").glob("*.db")
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        queue = self._folder / "embed" / "queue.sqlite"
        return Sample(
            ticks=rounds * SENSORS,
            day=(self._daemon.now - self._begun) / timedelta(days=1),
            storage_mb=sum(path.stat().st_size for path in stored) / 1e6,
            files=len(stored),
            ticks_stored=rows(self._ticks, "job_ticks"),
            run_events=sum(rows(log, "event_logs") for log in logs),
            queue_mb=sum(it.stat().st_size for it in queue.parent.glob(f"{queue.name}*")) / 1e6,
            queue_events=rows(queue, "event"),
            rss_mb=pages * os.sysconf("SC_PAGE_SIZE") / 1e6,
        )

    @property
    def _ticks(self) -> Path:
        return self._folder / "dagster" / "schedules" / "schedules.db"


@contextmanager
def opened_tools() -> Iterator[Services]:
    services = wiring.open_services(load_settings())
    with closing(services.jobs), closing(services.graph), closing(services.limiter):
        yield services


def rows(file: Path, table: str, which: str = "true") -> int:
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        count = connection.execute(f"SELECT count(*) FROM {table} WHERE {which}")
        return int(count.fetchone()[0])


def prepared(folder: Path) -> Path:
    """The instance of `dagster.yaml`, with runs executed here instead of in processes."""
    home = folder / "dagster"
    home.mkdir()
    settings = yaml.safe_load((ROOT / "dagster.yaml").read_text())
    for ours in ("run_queue", "concurrency", "run_monitoring"):
        settings.pop(ours, None)
    settings["python_logs"] = {"python_log_level": "ERROR"}
    here = "dagster._core.launcher.sync_in_memory_run_launcher"
    settings["run_launcher"] = {"module": here, "class": "SyncInMemoryRunLauncher"}
    core = "dagster._core.run_coordinator"
    settings["run_coordinator"] = {"module": core, "class": "DefaultRunCoordinator"}
    (home / "dagster.yaml").write_text(yaml.safe_dump(settings))
    variables = {"EMBED_ENV": "local", "EMBEDDING_PROVIDER": "mock", "EMBED_LOG_LEVEL": "ERROR"}
    os.environ.update(variables, EMBED_HOME=str(folder / "embed"), DAGSTER_HOME=str(home))
    return home


@contextmanager
def accelerated(daemon: SensorDaemon) -> Iterator[None]:
    """All clocks of ours are the daemon's."""
    daemon.now -= SIMULATED + timedelta(days=1)
    read_anew, read = ScriptDirectory.from_config, dict[tuple[str | None, ...], ScriptDirectory]()

    def now(_clock: SystemClock) -> datetime:
        return daemon.now

    def read_once(config: Config) -> ScriptDirectory:
        """Each tick opens the instance again and reads all its migrations: half of its time."""
        key = tuple(map(config.get_main_option, ("script_location", "version_locations")))
        if key not in read:
            read[key] = read_anew(config)
        return read[key]

    with (
        mock.patch.object(SystemClock, "now", now),
        mock.patch.object(ScriptDirectory, "from_config", read_once),
    ):
        yield


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ticks", type=int, default=17_280)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    folder = Path(tempfile.mkdtemp(prefix="embed-soak-"))
    begun = time.monotonic()
    try:
        with (
            dg.DagsterInstance.from_config(str(prepared(folder))) as instance,
            sensor_daemon(instance, "embed_pipeline.definitions") as daemon,
            accelerated(daemon),
        ):
            say(HEAD)
            outcome = Soak(folder, instance, daemon).run(asked.ticks)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    problems = problems_in(outcome)
    say(f"{outcome.samples[-1].ticks} ticks in {time.monotonic() - begun:.0f} s")
    say("\n".join(problems) or f"All {outcome.entities} entities are embedded; all stays flat.")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
