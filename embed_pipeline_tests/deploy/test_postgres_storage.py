"""The production instance on a real PostgreSQL: its storage opens, runs are stored and pruned."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import dagster as dg
import pytest
import yaml  # type: ignore[import-untyped]

from embed_pipeline_tests.defs.commands import Homes, dagster
from embed_pipeline_tests.defs.test_prune_history import age
from embed_pipeline_tests.deploy.files import read_yaml

pytestmark = pytest.mark.slow
JOB = ("job", "execute", "-m", "embed_pipeline.definitions", "-j")


@pytest.fixture
def homes(tmp_path: Path, postgres_url: str) -> Homes:
    """deploy/dagster.yaml as it is, but for the address: the server here listens on a socket."""
    homes = Homes.below(tmp_path)
    config = read_yaml("dagster.yaml")
    scheme = config["storage"]["postgres"]["postgres_db"]["scheme"]
    address = urlunsplit(urlsplit(postgres_url)._replace(scheme=scheme))
    config["storage"]["postgres"] = {"postgres_url": address}
    config["compute_logs"]["config"]["base_dir"] = str(tmp_path / "logs")
    (homes.dagster / "dagster.yaml").write_text(yaml.safe_dump(config))
    return homes


def test_runs_are_kept_in_postgres_and_old_ones_pruned_from_it(homes: Homes) -> None:
    observed = dagster(*JOB, "observe_job", homes=homes, EMBED_ENV="test")
    assert observed.returncode == 0, observed.stdout

    with dg.DagsterInstance.from_config(str(homes.dagster)) as instance:
        (run,) = instance.get_runs()
        assert run.status is dg.DagsterRunStatus.SUCCESS
        assert checks_of(instance) > 0
        age(instance, run.run_id, days=30)

    pruned = dagster(*JOB, "prune_history_job", homes=homes, EMBED_ENV="test")
    assert pruned.returncode == 0, pruned.stdout

    with dg.DagsterInstance.from_config(str(homes.dagster)) as instance:
        assert [left.job_name for left in instance.get_runs()] == ["prune_history_job"]
        assert instance.event_log_storage.get_logs_for_run(run.run_id) == []
        assert checks_of(instance) == 0


def checks_of(instance: dg.DagsterInstance) -> int:
    key = dg.AssetCheckKey(dg.AssetKey("embedding_queue"), "health")
    return len(instance.event_log_storage.get_asset_check_execution_history(key, limit=10))
