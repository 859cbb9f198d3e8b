"""Jobs of another program: taken in as ours, or named at set-up where that cannot be."""

from __future__ import annotations

from collections.abc import Sequence

from embed_pipeline.domain.job import DEFAULT_PRIORITY, HIGHEST_PRIORITY, LOWEST_PRIORITY, JobId
from embed_pipeline.stores.neo4j.driver.database import Neo4jDatabase, Row
from embed_pipeline.stores.neo4j.queue.cypher import adoption as cypher
from embed_pipeline.stores.neo4j.queue.cypher import recovery
from embed_pipeline.stores.neo4j.queue.session import Session
from embed_pipeline.stores.queue.transaction import Transaction

SAMPLE = 2_000
"""Jobs that one call reads."""

_PLACE = "recovery"
"""The document that remembers where the last call stopped."""


def terms(max_attempts: int) -> dict[str, int]:
    """What a job gets that says nothing of it, or too much."""
    return {
        "priority": DEFAULT_PRIORITY,
        "lowest": LOWEST_PRIORITY,
        "highest": HIGHEST_PRIORITY,
        "max_attempts": max_attempts,
    }


class Survey:
    """Reads the jobs, a sample at each call, for what no index would find.

    That is jobs without an end of lease, and jobs that were written after set-up without our
    fields, which are adopted. It remembers where it stopped, so that every job has its turn.
    """

    def __init__(self, session: Session, transaction: Transaction, *, max_attempts: int) -> None:
        self._session = session
        self._transaction = transaction
        self._max_attempts = max_attempts

    def next_unended(self) -> list[JobId]:
        after, seen = self._read_sample()
        self._move_on(after, seen)
        return list(seen["unended"])

    def has_unended(self) -> bool:
        """Where there is one the place stays, so that the next recovery reads there."""
        after, seen = self._read_sample()
        if not seen["unended"]:
            self._move_on(after, seen)
        return bool(seen["unended"])

    def _read_sample(self) -> tuple[str, Row]:
        place = self._transaction.state(_PLACE)
        after = place["after"] if place else ""
        seen = self._session.one(recovery.READ_SAMPLE, after=after, sample=SAMPLE)
        if seen["foreign"]:
            self._adopt(seen["foreign"])
        return after, seen

    def _move_on(self, after: str, seen: Row) -> None:
        """Round and round; a short queue is seen as a whole."""
        following = seen["last"] if seen["jobs_read"] == SAMPLE else ""
        if following != after:
            self._transaction.set_state(_PLACE, {"after": following})

    def _adopt(self, job_ids: Sequence[JobId]) -> None:
        adopted = self._session.one(cypher.ADOPT_THESE, ids=job_ids, **terms(self._max_attempts))
        if job_ids := adopted["adopted"]:
            self._transaction.record("jobs.adopted", job_ids=job_ids)
            self._transaction.announce("jobs.adopted", count=len(job_ids), job_ids=job_ids)


def sentences_on_jobs_left(database: Neo4jDatabase) -> list[str]:
    return _on_strange_models(database) + _on_nameless_jobs(database)


def _on_strange_models(database: Neo4jDatabase) -> list[str]:
    """A run leases by its own model's name, so a job under any other name waits forever."""
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
