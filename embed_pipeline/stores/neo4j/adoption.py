"""Jobs of another program that no run would ever take: said at set-up, because nobody else will."""

from __future__ import annotations

from embed_pipeline.stores.neo4j.session import Neo4jDatabase

# Reads every waiting job, which only set-up may do.
STRANGE_MODELS = """
MATCH (job:EmbedJob)
WHERE job.status = 'pending' AND NOT coalesce(toString(job.model), '') =~ '[^/]+/.+@[0-9]+'
RETURN coalesce(toString(job.model), '(none)') AS model, count(*) AS jobs
ORDER BY jobs DESC, model LIMIT 3
"""

INCOMPLETE_JOBS = """
MATCH (job:EmbedJob)
UNWIND [name IN ['id', 'entity_uid', 'version'] WHERE job[name] IS NULL] AS missing
RETURN missing, count(*) AS jobs ORDER BY missing
"""


def sentences_on_jobs_left(database: Neo4jDatabase) -> list[str]:
    return _on_strange_models(database) + _on_incomplete_jobs(database)


def _on_strange_models(database: Neo4jDatabase) -> list[str]:
    """A run leases by its own model's name, so a job under any other name waits for ever."""
    found = database.read(lambda tx: tx.all(STRANGE_MODELS))
    return [
        f"{row['jobs']} waiting jobs name the model {row['model']}, so no run will take them: set"
        " their property `model` to provider/name@dimensions, such as"
        " openai/text-embedding-3-small@1536, or delete them and run `embed-pipeline discover`."
        for row in found
    ]


def _on_incomplete_jobs(database: Neo4jDatabase) -> list[str]:
    """They were not adopted: a job that cannot be named cannot be completed either."""
    found = database.read(lambda tx: tx.all(INCOMPLETE_JOBS))
    return [
        f"{row['jobs']} jobs have no property `{row['missing']}`, so they were not adopted and no"
        " run will take them: set it, or delete them and run `embed-pipeline discover`."
        for row in found
    ]
