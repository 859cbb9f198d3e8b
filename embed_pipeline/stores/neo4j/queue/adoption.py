"""Jobs of another program: taken in as ours, or named at set-up where that cannot be."""

from __future__ import annotations

from collections.abc import Sequence

from embed_pipeline.domain.job import DEFAULT_PRIORITY, HIGHEST_PRIORITY, LOWEST_PRIORITY
from embed_pipeline.stores.neo4j.driver.database import Neo4jDatabase
from embed_pipeline.stores.neo4j.queue.cypher import adoption as cypher
from embed_pipeline.stores.neo4j.queue.session import Session
from embed_pipeline.stores.queue.maintenance import PAGE
from embed_pipeline.stores.queue.transaction import Transaction

SAMPLE = 2_000
"""The newest jobs, which are read first to find those of another program."""


def terms(max_attempts: int) -> dict[str, int]:
    """What a job gets that says nothing of it, or too much."""
    return {
        "priority": DEFAULT_PRIORITY,
        "lowest": LOWEST_PRIORITY,
        "highest": HIGHEST_PRIORITY,
        "max_attempts": max_attempts,
    }


class Adoption:
    """Brings jobs that another program has written or changed into our indexes."""

    def __init__(self, session: Session, transaction: Transaction, *, max_attempts: int) -> None:
        self._session = session
        self._transaction = transaction
        self._max_attempts = max_attempts

    def adopt_page(self) -> bool:
        """Whether more may be left. Costs a few index seeks if there is nothing to adopt."""
        found = self._session.one(cypher.FIND_CHANGED, page=PAGE)
        places = [*found["changed"], *self._find_new(found["new"])]
        if places:
            self.adopt(places)
            self._session.all(cypher.SET_ASIDE, places=places)
        return len(found["changed"]) >= PAGE or found["new"] > len(places) - len(found["changed"])

    def adopt(self, places: Sequence[str]) -> None:
        """Bring the jobs that lie there into our form."""
        given = terms(self._max_attempts)
        job_ids = self._session.one(cypher.ADOPT_THESE, places=places, **given)["adopted"]
        if job_ids:
            self._transaction.record("jobs.adopted", job_ids=job_ids)
            self._transaction.announce("jobs.adopted", count=len(job_ids), job_ids=job_ids)

    def complete_without_text(self) -> bool:
        """Whether more may be left."""
        done = self._session.one(cypher.COMPLETE_WITHOUT_TEXT, page=PAGE)["done"]
        if done:
            self._transaction.record("jobs.completed", reason="nothing to embed", job_ids=done)
        return len(done) >= PAGE

    def _find_new(self, count: int) -> list[str]:
        """Among the newest nodes, where they usually are, otherwise among all."""
        if count <= 0:
            return []
        places = self._session.all(cypher.FIND_NEWEST, sample=SAMPLE, page=PAGE)
        return [row["place"] for row in places or self._session.all(cypher.FIND_NEW, page=PAGE)]


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
