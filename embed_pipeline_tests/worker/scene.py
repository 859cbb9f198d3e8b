"""The scene of the worker's tests: entities, jobs and a world to work in."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import numpy as np

from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.embedding import Vector
from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.domain.job import EmbedJob, EntityUid, JobId, JobStatus
from embed_pipeline.domain.lease import Lease
from embed_pipeline.domain.recipe import version_of
from embed_pipeline.domain.recovery import QueuePolicy
from embed_pipeline.domain.window import RateLimit, Spent
from embed_pipeline.ports.clock import Clock
from embed_pipeline.ports.rate_limiter import RateLimiter
from embed_pipeline.stores.queue.rate_limiter import SharedRateLimiter, Unlimited
from embed_pipeline.stores.sqlite.queue.backend import QueueFile
from embed_pipeline.usecases.entities.create import CreateReport, create_entities, upsert_entities
from embed_pipeline.worker.context import RunLimits, Services
from embed_pipeline.worker.report import RunReport
from embed_pipeline.worker.run import drain
from embed_pipeline.worker.stop import Deadline
from embed_pipeline_tests.clocks import MINUTE, FakeClock
from embed_pipeline_tests.stores.sqlite_queue import run_sql
from embed_pipeline_tests.worker.parts import FragileGraph, ScriptedProvider, WatchedJobStore

MODEL = "mock/mock@8"
ONE_BY_ONE = RunLimits(concurrency=1, writers=1, ahead=0)
"""Nothing overlaps: what happens in a test happens in one order."""
NOTES_ONLY = Collection(text=("observations",))
"""A mapping under which an entity can be without any text: the name does not count."""


def uid(number: int | str) -> EntityUid:
    return EntityUid(f"e{number:03}" if isinstance(number, int) else number)


def entity(number: int | str, *notes: str) -> NewEntity:
    return NewEntity(
        uid=uid(number),
        name=f"entity {number}",
        properties={"observations": notes or (f"note {number}",)},
    )


class World:
    """One queue, one graph, one provider; `clock` is the database's and, unless said, ours."""

    def __init__(
        self,
        home: Path,
        clock: FakeClock,
        *,
        max_inputs: int = 2048,
        requests: int | None = None,
        tokens: int | None = None,
        interval: timedelta = MINUTE,
        run_limits: RunLimits | None = None,
        policy: QueuePolicy | None = None,
        mapping: Collection | None = None,
        worker_clock: Clock | None = None,
    ) -> None:
        self.home, self.clock = home, clock
        queue = QueueFile(home / "queue.sqlite", clock=clock)
        self.jobs = WatchedJobStore(queue, policy=policy)
        self.graph = FragileGraph(
            home / "graph.sqlite", mapping=mapping or Collection(), clock=clock
        )
        self.provider = ScriptedProvider(max_inputs=max_inputs)
        self.limiter: RateLimiter = Unlimited(clock=clock)
        if requests is not None:
            limit = RateLimit(requests=requests, tokens=tokens, interval=interval)
            self.limiter = SharedRateLimiter(queue, provider="mock", limit=limit)
        self.services = Services(
            jobs=self.jobs,
            graph=self.graph,
            provider=self.provider,
            limiter=self.limiter,
            clock=worker_clock or clock,
            run_limits=run_limits or ONE_BY_ONE,
        )

    def close(self) -> None:
        self.jobs.close()
        self.graph.close()

    # -- doing ------------------------------------------------------------------------------

    def create(self, *entities: NewEntity) -> CreateReport:
        return create_entities(self.jobs, self.graph, entities, model=MODEL)

    def fill(self, count: int, *, first: int = 0) -> None:
        self.create(*(entity(number) for number in range(first, first + count)))

    def upsert(self, *entities: NewEntity) -> CreateReport:
        return upsert_entities(self.jobs, self.graph, entities, model=MODEL)

    def run(self, *, owner: str = "worker-a", limit: int | None = None) -> RunReport:
        """One run, as a Dagster run would do it."""
        return drain(self.services, owner=owner, limit=limit)

    def lease(self, limit: int = 2_000, *, owner: str = "worker-a", token: str = "t1") -> Lease:
        self.graph.register_first_model(MODEL, dimensions=self.provider.dimensions)
        return self.jobs.lease(owner=owner, model=MODEL, limit=limit, token=token)

    def deadline(self, limit: timedelta | None = None) -> Deadline:
        return Deadline(self.services.clock, limit=limit)

    def spend(self, requests: int) -> None:
        for _ in range(requests):
            self.limiter.take(Spent(requests=1))

    def reopen_jobs(self) -> None:
        """As if the worker had died between its last write to the graph and the completion."""
        run_sql(self.jobs, "UPDATE embed_job SET status = 'pending', processed_at = NULL")

    def write_as_another_program(self, key: EntityUid, notes: str) -> None:
        statement = "UPDATE Entity SET observations = :notes WHERE uid = :uid"
        self.graph.backend.write(lambda tx: tx.all(statement, notes=notes, uid=key))

    def remove(self, key: EntityUid) -> None:
        statement = "DELETE FROM Entity WHERE uid = :uid"
        self.graph.backend.write(lambda tx: tx.all(statement, uid=key))

    def spoil_vector(self, key: EntityUid, number: float) -> None:
        """As another program might, which knows nothing of the model and version beside it."""
        invalid = np.full(self.provider.dimensions, number, dtype="<f4").tobytes()
        statement = "UPDATE embedding_vectors SET vector = :vector WHERE uid = :uid"
        self.graph.backend.write(lambda tx: tx.all(statement, vector=invalid, uid=key))

    def lose_vectors(self) -> None:
        """As a restored backup would."""
        self.graph.backend.write(lambda tx: tx.all("DELETE FROM embedding_vectors"))

    # -- looking ----------------------------------------------------------------------------

    @property
    def all_jobs(self) -> list[EmbedJob]:
        found = run_sql(self.jobs, "SELECT id FROM embed_job ORDER BY seq")
        ids = [JobId(row["id"]) for row in found]
        return [job for job_id in ids if (job := self.jobs.get(job_id))]

    def jobs_of(self, key: EntityUid) -> list[EmbedJob]:
        return [job for job in self.all_jobs if job.entity_uid == key]

    def job_of(self, key: EntityUid) -> EmbedJob:
        (job,) = self.jobs_of(key)
        return job

    def count(self, status: JobStatus) -> int:
        return sum(job.status is status for job in self.all_jobs)

    def stored(self, key: EntityUid) -> tuple[str, Vector] | None:
        """The version and the vector that the graph holds of an entity."""
        query = "SELECT version, vector FROM embedding_vectors WHERE uid = :uid"
        rows = self.graph.backend.read(lambda tx: tx.all(query, uid=key))
        return (rows[0]["version"], np.frombuffer(rows[0]["vector"], "<f4")) if rows else None

    def has_vector_of(self, key: EntityUid, text: str) -> bool:
        stored = self.stored(key)
        return stored is not None and (
            stored[0] == version_of(text)
            and np.array_equal(stored[1], self.provider.answer([text]).vectors[0])
        )

    def is_embedded(self, key: EntityUid) -> bool:
        """Whether the entity has exactly the vector of the text that it has now."""
        found = self.graph.get_entity(key)
        return found is not None and self.has_vector_of(key, found.text)

    def text_of(self, key: EntityUid) -> str:
        found = self.graph.get_entity(key)
        assert found is not None
        return found.text
