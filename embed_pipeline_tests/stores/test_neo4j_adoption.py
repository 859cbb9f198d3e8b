"""What set-up says of jobs that another program left, and that no run would take."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embed_pipeline.stores.neo4j.adoption import sentences_on_strange_models
from embed_pipeline.stores.neo4j.session import Neo4jDatabase
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.stores.neo4j_queue import connect

ADD_JOBS = """
UNWIND $jobs AS job
CREATE (:EmbedJob {id: job[0], model: job[1], status: job[2], entity_uid: 'e', version: job[0]})
"""


@pytest.fixture
def queue(neo4j_queue: BedServer) -> Iterator[Neo4jDatabase]:
    neo4j_queue.wipe()
    database = connect(neo4j_queue.address)
    yield database
    database.close()


def test_waiting_jobs_under_a_strange_model_are_told_with_what_to_do(
    neo4j_queue: BedServer, queue: Neo4jDatabase
) -> None:
    neo4j_queue.run(
        ADD_JOBS,
        jobs=[
            ["1", "text-embedding-3-small", "pending"],
            ["2", "text-embedding-3-small", "pending"],
            ["3", None, "pending"],
            ["4", "text-embedding-3-small", "completed"],
            ["5", "openai/text-embedding-3-small@1536", "pending"],
        ],
    )

    first, second = sentences_on_strange_models(queue)

    assert first.startswith("2 waiting jobs name the model text-embedding-3-small, so no run")
    assert "provider/name@dimensions" in first
    assert second.startswith("1 waiting jobs name the model (none)")


def test_jobs_of_ours_are_not_mentioned(neo4j_queue: BedServer, queue: Neo4jDatabase) -> None:
    models = ["openai/text-embedding-3-small@1536", "local/org/name@256", "mock/mock@64"]
    neo4j_queue.run(ADD_JOBS, jobs=[[model, model, "pending"] for model in models])

    assert sentences_on_strange_models(queue) == []
