# mypy: ignore-errors
"""Writes the data of version 0.1 that the tests of the migration begin with.

It runs the code of 0.1, so it needs a checkout of that on the path, and the jars of Neo4j:

    git worktree add --detach ../version-0.1 4fa41ca
    PYTHONPATH=../version-0.1 python embed_pipeline_tests/migration/make_old_data.py

The results stand beside it: two SQL dumps and two Cypher scripts, a statement a line.
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from embed_pipeline.model.embedding import VectorWrite
from embed_pipeline.model.entity import EntityMapping, NewEntity
from embed_pipeline.model.job import ENTITY_GONE, FailureRecord, JobRequest
from embed_pipeline.model.window import RateLimit, Spent
from embed_pipeline.stores.neo4j.entity_store import Neo4jEntityStore
from embed_pipeline.stores.neo4j.job_store import Neo4jJobStore
from embed_pipeline.stores.neo4j.rate_limiter import Neo4jRateLimiter
from embed_pipeline.stores.neo4j.session import Neo4jDatabase
from embed_pipeline.stores.sqlite.entity_store import SqliteEntityStore
from embed_pipeline.stores.sqlite.job_store import SqliteJobStore
from embed_pipeline.stores.sqlite.rate_limiter import SqliteRateLimiter

from embed_pipeline.errors import ErrorCategory
from embed_pipeline.stores.neo4j import schema
from embed_pipeline.stores.neo4j.queue import QueueDatabase
from embed_pipeline.stores.sqlite.queue import QueueFile
from embed_pipeline_tests.clocks import FakeClock
from embed_pipeline_tests.neo4j_bed import GRAPH, QUEUE, Server

HERE = Path(__file__).parent
MODEL, DIMENSIONS = "mock/mock@4", 4
START = datetime(2026, 3, 1, 12, tzinfo=UTC)
LIMIT = RateLimit(requests=100, interval=timedelta(minutes=1), tokens=10_000)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        sqlite_files(Path(folder))
        neo4j_databases(Path(folder))


def sqlite_files(folder: Path) -> None:
    clock = FakeClock(START)
    queue = QueueFile(folder / "queue.sqlite", clock=clock)
    jobs = SqliteJobStore(queue)
    graph = SqliteEntityStore(folder / "graph.sqlite", mapping=EntityMapping(), clock=clock)
    with closing(graph), closing(jobs):
        limiter = SqliteRateLimiter(queue, provider="mock", limit=LIMIT)
        Story(jobs, graph, limiter, clock).tell()
    for name in ("queue", "graph"):
        with closing(sqlite3.connect(folder / f"{name}.sqlite")) as connection:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            lines = [*connection.iterdump(), f"PRAGMA user_version = {version};"]
        (HERE / f"{name}.sql").write_text("\n".join(lines) + "\n")


def neo4j_databases(folder: Path) -> None:
    clock = FakeClock(START)
    servers = [Server(spec, home=folder / spec.name) for spec in (QUEUE, GRAPH)]
    for server in servers:
        server.start()
    try:
        queue, graph = (opened(server, clock) for server in servers)
        schema.prepare_queue(queue)
        schema.prepare_graph(graph, EntityMapping())
        jobs = Neo4jJobStore(QueueDatabase(queue, clock=clock))
        limiter = Neo4jRateLimiter(QueueDatabase(queue, clock=clock), provider="mock", limit=LIMIT)
        entities = Neo4jEntityStore(graph, mapping=EntityMapping())
        Story(jobs, entities, limiter, clock).tell()
        for name, database in (("queue", queue), ("graph", graph)):
            (HERE / f"{name}.cypher").write_text("\n".join(script(database)) + "\n")
    finally:
        for server in servers:
            server.kill()


def opened(server: Server, clock: FakeClock) -> Neo4jDatabase:
    address = server.address
    return Neo4jDatabase(
        address.uri,
        user=address.user,
        password=address.password,
        database=address.database,
        clock=clock,
    )


class Story:
    """Entities and jobs in every state that 0.1 knows; `e07` is both entity and job number 7."""

    def __init__(self, jobs, graph, limiter, clock) -> None:
        self.jobs, self.graph, self.limiter, self.clock = jobs, graph, limiter, clock

    def tell(self) -> None:
        self.graph.register_first_model(MODEL, dimensions=DIMENSIONS)
        new = [self.entity(number) for number in range(1, 21)]
        self.graph.create_entities(new, model=MODEL)

        # Embedded: 1 as usual, 2 and 15 to be forced later, 13 changed later, 16 soft-deleted.
        self.enqueue(1, 2, 13, 15, 16)
        self.finish(1, 2, 13, 15, 16, owner="worker-1")
        self.graph.soft_delete([uid(16)])
        self.graph.upsert_entities([self.entity(13, "another fact")], model=MODEL)

        # Failed: 7 permanent, 8 after three transient errors, 9 because its entity was deleted.
        self.enqueue(7, 8, 9)
        self.fail(7, ErrorCategory.PERMANENT, "The text is too long.")
        for _ in range(3):
            self.fail(8, ErrorCategory.TRANSIENT, "The provider did not answer.")
        self.graph.soft_delete([uid(9)])
        self.fail(9, ErrorCategory.PERMANENT, "The entity is gone.", fail_code=ENTITY_GONE)

        # Killed every worker that took it, until it was failed alone.
        self.enqueue(12)
        while self.take(12, owner="worker-killed").jobs:
            self.clock.advance(timedelta(hours=1))
            self.jobs.recover_stale()
            self.clock.advance(timedelta(hours=1))

        # Strikes: 10 travels with few others, 11 alone; 17 met an error that stops all work.
        self.enqueue(10, 11, 17)
        for number, strikes in ((10, 2), (11, 4), (17, 0)):
            for _ in range(strikes):
                self.defer(number, ErrorCategory.TRANSIENT, "The batch was refused.", strike=True)
        self.defer(17, ErrorCategory.CRITICAL, "The key is not accepted.")

        # Held: 6 by a worker that is gone, 5 and 15 by one that works; 15 was forced meanwhile.
        self.enqueue(6, priority=9)
        self.take(6, owner="worker-gone")
        self.clock.advance(timedelta(minutes=10))
        self.force(15)
        self.enqueue(5, priority=9)
        self.take(5, owner="worker-2")
        self.take(15, owner="worker-2")
        self.force(15)

        # Waiting: 3 as usual, 2 forced, 4 after its first error, 13 for its new text, 18 urgent,
        # 19 for an hour.
        self.enqueue(4, priority=9)
        self.fail(4, ErrorCategory.TRANSIENT, "The provider did not answer.")
        self.force(2)
        self.enqueue(3, 13)
        self.enqueue(18, 19, priority=9)
        self.defer(19, ErrorCategory.TRANSIENT, "It is too early.", delay=timedelta(hours=1))
        # 14 and 20 are marked and have no job.

        self.limiter.take(Spent(requests=3, tokens=700))
        self.limiter.pause(timedelta(seconds=20))
        self.jobs.counters.add({"entities_embedded": 5, "tokens_used": 700})
        self.graph.save_cursor("sweep", uid(7))
        self.jobs.breakers.trip("mock", seen=0, error=problem("The provider did not answer."))
        self.jobs.switch.pause("Until tomorrow.")

    def entity(self, number: int, fact: str | None = None) -> NewEntity:
        facts = (fact or f"fact {number}",)
        return NewEntity(
            uid=uid(number),
            name=f"entity {number}",
            entity_type="thing",
            properties={"observations": facts},
        )

    def request(self, number: int, **changes) -> JobRequest:
        version = self.graph.get_entity(uid(number)).version
        return JobRequest(entity_uid=uid(number), model=MODEL, version=version, **changes)

    def enqueue(self, *numbers: int, **changes) -> None:
        self.jobs.enqueue([self.request(number, **changes) for number in numbers])
        self.clock.advance(timedelta(seconds=1))

    def force(self, number: int) -> None:
        self.enqueue(number, priority=9, force=True, embedded=True)

    def take(self, number: int, owner: str):
        """Lease until the job of this entity is among them; give the others back."""
        leases, kept = [], []
        while not kept:
            self.clock.advance(timedelta(seconds=1))
            token = f"{owner} at {self.clock.now():%H:%M:%S}"
            lease = self.jobs.lease(owner=owner, model=MODEL, limit=100, token=token)
            if not lease.jobs:
                break
            leases.append(lease)
            kept = [job for job in lease.jobs if job.entity_uid == uid(number)]
        for lease in leases:
            self.jobs.release(lease, [job.id for job in lease.jobs if job not in kept])
        return Taken(lease, kept)

    def finish(self, *numbers: int, owner: str) -> None:
        lease = self.jobs.lease(owner=owner, model=MODEL, limit=100, token=owner)
        entities = [self.graph.get_entity(uid(number)) for number in numbers]
        vector = np.array((1, 2, 3, 4), dtype=np.float32)
        writes = [VectorWrite(entity=one, vector=vector) for one in entities]
        self.graph.write_vectors(writes, model=MODEL)
        self.jobs.complete(lease, [job.id for job in lease.jobs])
        self.clock.advance(timedelta(seconds=1))

    def fail(self, number: int, category: ErrorCategory, message: str, **more) -> None:
        taken = self.take(number, owner="worker-1")
        (job,) = taken.jobs
        self.jobs.fail(taken.lease, {job.id: problem(message, category, **more)})
        if number != 4:
            self.clock.advance(timedelta(minutes=1))

    def defer(self, number: int, category: ErrorCategory, message: str, **more) -> None:
        taken = self.take(number, owner="worker-1")
        (job,) = taken.jobs
        self.jobs.defer(taken.lease, [job.id], error=problem(message, category), **more)
        self.clock.advance(timedelta(minutes=1))


class Taken:
    def __init__(self, lease, jobs) -> None:
        self.lease, self.jobs = lease, jobs


def uid(number: int) -> str:
    return f"e{number:02}"


def problem(message: str, category=ErrorCategory.TRANSIENT, **more) -> FailureRecord:
    return FailureRecord(category=category, error_type="OldError", message=message, **more)


def script(database: Neo4jDatabase) -> list[str]:
    """Schema first, as `init` made it; then the nodes, by their labels."""
    constraints = database.autocommit(
        "SHOW CONSTRAINTS YIELD name, createStatement RETURN * ORDER BY name"
    )
    indexes = database.autocommit(
        "SHOW INDEXES YIELD name, type, owningConstraint, createStatement "
        "WHERE owningConstraint IS NULL AND type <> 'LOOKUP' RETURN * ORDER BY name"
    )
    nodes = database.autocommit("MATCH (n) RETURN labels(n) AS labels, properties(n) AS fields")
    found = database.autocommit("MATCH ()-[r]->() RETURN count(r) AS found")[0]["found"]
    assert found == 0, "relationships are not written"
    made = [
        f"CREATE (:{':'.join(sorted(row['labels']))} {{{fields(row['fields'])}}})" for row in nodes
    ]
    return [f"{row['createStatement']};" for row in (*constraints, *indexes)] + [
        f"{line};" for line in sorted(made)
    ]


def fields(values: dict[str, object]) -> str:
    return ", ".join(f"`{name}`: {literal(value)}" for name, value in sorted(values.items()))


def literal(value: object) -> str:
    if hasattr(value, "iso_format"):
        return f"datetime('{value.iso_format()}')"
    assert isinstance(value, str | int | float | list), type(value)
    return json.dumps(value)


if __name__ == "__main__":
    main()
