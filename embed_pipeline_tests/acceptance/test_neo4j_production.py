"""Dagster's own command in production: two Neo4j servers, an OpenAI on loopback, variables only."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.usecases.entities.create import create_entities
from embed_pipeline_tests.acceptance import budget
from embed_pipeline_tests.acceptance.production import PATIENCE, RUN, Production
from embed_pipeline_tests.contracts.entity_store.scene import coverage_of
from embed_pipeline_tests.defs.commands import dagster

ENTITIES = 200
"""In the sample graph."""


@pytest.mark.slow
def test_embed_job_with_production_settings_embeds_the_sample_graph(
    production: Production,
) -> None:
    loaded = production.command("load", "examples/sample_graph.csv")
    assert loaded.returncode == 0, loaded.stderr

    ended = dagster(
        *("job", "execute", "-m", "embed_pipeline.definitions", "-j", "embed_job"),
        homes=production.homes,
        **production.variables,
    )

    assert ended.returncode == 0, ended.stdout
    with production.services() as services:
        coverage = coverage_of(services.graph, model=services.model)
        status = services.jobs.get_queue_status()
    assert services.model == "openai/text-embedding-3-small@1536"
    assert (coverage.entities, coverage.embedded, coverage.percent) == (ENTITIES, ENTITIES, 100)
    assert (status.completed, status.total) == (ENTITIES, ENTITIES)
    assert sum(request.inputs for request in production.openai.requests) == ENTITIES
    for secret in (production.queue.password, production.graph.password):
        assert secret not in ended.stdout


@pytest.mark.slow
def test_four_processes_keep_to_the_one_budget_that_lies_in_neo4j(production: Production) -> None:
    production.variables.update(budget.VARIABLES)
    entities = [NewEntity(name=f"entity {number}") for number in range(budget.ENTITIES)]
    with production.services() as services:
        create_entities(services.jobs, services.graph, entities, model=services.model)

    with ExitStack() as stack:
        workers = [stack.enter_context(production.started(*RUN)) for _ in range(4)]
        endings = [worker.communicate(timeout=PATIENCE) for worker in workers]

    assert [worker.returncode for worker in workers] == [0] * 4, endings
    budget.assert_kept(production.openai)
