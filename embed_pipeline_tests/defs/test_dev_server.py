"""`make dev`, from end to end: a daemon, a UI, a code server and runs in processes of their own."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import dagster as dg
import pytest

from embed_pipeline import wiring
from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.settings import load_settings
from embed_pipeline.usecases.entities.create import create_entities
from embed_pipeline_tests.contracts.entity_store.scene import coverage_of
from embed_pipeline_tests.defs.commands import Homes, left_in_the_checkout
from embed_pipeline_tests.defs.dev_server import dev_server, within


@pytest.mark.slow
def test_new_entity_is_embedded_by_itself_and_the_history_survives(tmp_path: Path) -> None:
    homes, before = Homes.below(tmp_path), left_in_the_checkout()
    variables = {"EMBED_ENV": "local", "EMBEDDING_PROVIDER": "mock"}
    services = wiring.open_services(load_settings(variables | {"EMBED_HOME": str(homes.embed)}))

    def embedded() -> bool:
        return coverage_of(services.graph, model=services.model).percent == 100

    with closing(services.jobs), closing(services.graph), dev_server(homes, **variables) as server:
        new = [NewEntity(name="a new entity")]
        create_entities(services.jobs, services.graph, new, model=services.model)
        within(60, embedded, lambda: str(services.jobs.get_queue_status()))

        launched = server.launch("embed_job")
        within(60, lambda: server.status_of(launched) == "SUCCESS")

    with dg.DagsterInstance.from_config(str(homes.dagster)) as instance:
        runs = instance.get_runs(dg.RunsFilter(job_name="embed_job"))
    by_itself = [run for run in runs if run.tags.get("embed_pipeline/trigger") == "queue"]
    assert by_itself
    assert launched in [run.run_id for run in runs]
    assert {run.status for run in runs} == {dg.DagsterRunStatus.SUCCESS}
    assert left_in_the_checkout() == before
