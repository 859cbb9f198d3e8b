"""Dagster's own command in production: two Neo4j servers, an OpenAI on loopback, variables only."""

from __future__ import annotations

import pytest

from embed_pipeline_tests.acceptance.production import Production
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
    with production.tools() as tools:
        coverage = tools.graph.coverage(model=tools.model)
        status = tools.jobs.get_queue_status()
    assert tools.model == "openai/text-embedding-3-small@1536"
    assert (coverage.entities, coverage.embedded, coverage.percent) == (ENTITIES, ENTITIES, 100)
    assert (status.completed, status.total) == (ENTITIES, ENTITIES)
    assert sum(request.inputs for request in production.openai.requests) == ENTITIES
    for secret in (production.queue.password, production.graph.password):
        assert secret not in ended.stdout
