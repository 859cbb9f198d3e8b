"""Jobs of another program: taken in as ours, and told of at set-up where that cannot be."""

from __future__ import annotations

from collections.abc import Sequence

from embed_pipeline.domain.job import DEFAULT_PRIORITY, HIGHEST_PRIORITY, LOWEST_PRIORITY, JobId
from embed_pipeline.stores.neo4j.driver.database import Neo4jDatabase
from embed_pipeline.stores.neo4j.queue.backend import QueueTransaction
from embed_pipeline.stores.neo4j.queue.cypher import adoption as cypher


def terms(max_attempts: int) -> dict[str, int]:
    """What a job gets that says nothing of it, or too much."""
    return {
        "priority": DEFAULT_PRIORITY,
        "lowest": LOWEST_PRIORITY,
        "highest": HIGHEST_PRIORITY,
        "max_attempts": max_attempts,
    }


def adopt_these(
    transaction: QueueTransaction, job_ids: Sequence[JobId], *, max_attempts: int
) -> None:
    """Those that were written after set-up, as soon as somebody comes across them."""
    adopted = transaction.one(cypher.ADOPT_THESE, ids=job_ids, **terms(max_attempts))["adopted"]
    if adopted:
        transaction.record("jobs.adopted", job_ids=adopted)
        transaction.announce("jobs.adopted", count=len(adopted), job_ids=adopted)


def sentences_on_jobs_left(database: Neo4jDatabase) -> list[str]:
    return _on_strange_models(database) + _on_nameless_jobs(database)


def _on_strange_models(database: Neo4jDatabase) -> list[str]:
    """A run leases by its own model's name, so a job under any other name waits for ever."""
    found = database.read(lambda tx: tx.all(cypher.STRANGE_MODELS))
    return [
        f"{row['jobs']} waiting jobs name the model {row['model']}, so no run will take them: set"
        " their property `model` to provider/name@dimensions, such as"
        " openai/text-embedding-3-small@1536, or delete them and run `embed-pipeline discover`."
        for row in found
    ]


def _on_nameless_jobs(database: Neo4jDatabase) -> list[str]:
    """They were not adopted: a job that cannot be named cannot be completed either."""
    found = database.read(lambda tx: tx.all(cypher.NAMELESS_JOBS))
    return [
        f"{row['jobs']} jobs have no text as their property `{row['missing']}`, so they were not"
        " adopted and no run will take them: set it to a string, or delete them and run"
        " `embed-pipeline discover`."
        for row in found
    ]
