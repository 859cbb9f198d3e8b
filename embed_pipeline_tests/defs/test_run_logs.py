"""Structured logs of a real `dagster job execute`: on stderr and in the run's own log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from embed_pipeline_tests.defs.commands import Homes, dagster
from embed_pipeline_tests.defs.scene import Pipeline, settings_in

SECTION_7 = {
    "jobId",
    "entityName",
    "operation",
    "errorType",
    "attempt",
    "maxAttempts",
    "message",
    "stack",
    "timestamp",
    "workerId",
    "model",
    "rateLimiter",
    "cache",
    "observations",
}


class Executed:
    """One run of embed_job with a job that fails, and all that it wrote."""

    def __init__(self, homes: Homes, output: str) -> None:
        self.stderr = list(entries(output))
        with dg.DagsterInstance.from_config(str(homes.dagster)) as instance:
            (run,) = instance.get_runs()
            self.run_id = run.run_id
            self.run_log = [str(entry.user_message) for entry in instance.all_logs(run.run_id)]
        captured = homes.dagster.glob(f"storage/{run.run_id}/compute_logs/*.err")
        self.compute_log = list(entries("\n".join(path.read_text() for path in captured)))


def entries(text: str) -> Iterator[dict[str, Any]]:
    """The lines that are JSON and nothing else."""
    for line in text.splitlines():
        if line.startswith("{"):
            yield json.loads(line)


def of(lines: list[dict[str, Any]], event: str) -> dict[str, Any]:
    (found,) = [line for line in lines if line["event"] == event]
    return found


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Executed:
    homes = Homes.below(Path(tmp_path_factory.mktemp("run_logs")))
    pipeline = Pipeline(settings_in(homes.embed))
    pipeline.create("a", "deleted meanwhile")
    (entity,) = pipeline.services.graph.find_by_name("deleted meanwhile")
    pipeline.services.graph.soft_delete([entity.uid])
    pipeline.close()
    ended = dagster(
        *("job", "execute", "-m", "embed_pipeline.definitions", "-j", "embed_job"),
        homes=homes,
        EMBED_ENV="test",
    )
    assert ended.returncode == 0, ended.stdout
    return Executed(homes, ended.stdout)


@pytest.mark.parametrize("where", ["stderr", "compute_log"])
def test_failed_job_is_a_line_of_json_with_all_its_facts(executed: Executed, where: str) -> None:
    line = of(getattr(executed, where), "job.failed")

    assert SECTION_7 - line.keys() == set()
    assert (line["entityName"], line["errorType"]) == ("deleted meanwhile", "PERMANENT")
    assert line["workerId"] == executed.run_id


@pytest.mark.parametrize("where", ["stderr", "compute_log"])
def test_every_batch_has_a_line_of_metrics(executed: Executed, where: str) -> None:
    line = of(getattr(executed, where), "batch.measured")

    assert (line["leased"], line["embedded"], line["failed"]) == (2, 1, 1)
    assert line["perSecond"] > 0


def test_log_in_the_ui_has_sentences_with_their_facts(executed: Executed) -> None:
    (line,) = [line for line in executed.run_log if "(job.failed " in line]

    assert line.startswith("The ")
    assert 'entityName="deleted meanwhile"' in line
    assert "errorType=" in line
    assert not any(line.startswith("{") for line in executed.run_log)
