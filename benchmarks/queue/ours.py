"""Our own queue on SQLite, Neo4j and PostgreSQL, called as the worker calls it."""

from __future__ import annotations

import itertools
import math
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from benchmarks.queue.contestant import FIRST, PAGE, USUAL, Contestant, Worked
from benchmarks.reaper import server as postgres_server
from benchmarks.servers import production_server
from embed_pipeline.domain.job import EntityUid, JobRequest
from embed_pipeline.domain.recovery import QueuePolicy
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.stores.neo4j.driver.database import Neo4jDatabase
from embed_pipeline.stores.neo4j.queue.backend import Neo4jQueue
from embed_pipeline.stores.neo4j.queue.job_store import Neo4jJobStore
from embed_pipeline.stores.neo4j.setup import schema
from embed_pipeline.stores.queue.job_store import QueueJobStore
from embed_pipeline.stores.sqlite.queue.backend import QueueFile
from embed_pipeline_tests.neo4j_bed import QUEUE
from embed_pipeline_tests.stores import postgres_queue

MODEL = "mock/mock@64"
SHORT = QueuePolicy(lock_duration=timedelta(milliseconds=1))

OpenStore = Callable[[QueuePolicy | None], JobStore]


class Ours(Contestant):
    def __init__(self, name: str, open_store: OpenStore) -> None:
        self.name = name
        self._store, self._gone = open_store(None), open_store(SHORT)
        self._numbers = itertools.count()

    def enqueue(self, count: int, priority: int = USUAL) -> None:
        for start in range(0, count, PAGE):
            many = min(PAGE, count - start)
            self._store.enqueue([self._request(priority) for _ in range(many)])

    def _request(self, priority: int) -> JobRequest:
        uid = EntityUid(f"entity-{next(self._numbers):08}")
        version = uuid.uuid5(uuid.NAMESPACE_OID, uid).hex
        return JobRequest(entity_uid=uid, model=MODEL, version=version, priority=priority)

    def work(self, *, jobs: int, batch: int, seconds: float) -> Worked:
        worked = Worked()
        began = time.perf_counter()
        while worked.jobs < jobs and time.perf_counter() - began < seconds:
            before = time.perf_counter()
            lease = self._store.lease(
                owner="benchmark", model=MODEL, limit=batch, token=uuid.uuid4().hex
            )
            worked.leases.append(time.perf_counter() - before)
            done = self._store.complete(lease, lease.job_ids).done
            assert len(done) == batch, (len(done), batch)
            worked.jobs += batch
        worked.seconds = time.perf_counter() - began
        return worked

    def abandon(self, count: int) -> None:
        self.enqueue(count, FIRST)
        taken = 0
        while taken < count:
            limit = min(PAGE, count - taken)
            lease = self._gone.lease(owner="gone", model=MODEL, limit=limit, token=uuid.uuid4().hex)
            assert len(lease.jobs) == limit
            taken += limit
        time.sleep(0.01)

    def recover(self, count: int) -> None:
        recovered = self._store.recover_stale(limit=count)
        assert len(recovered.jobs) == count, len(recovered.jobs)

    def settle(self, count: int) -> None:
        self.work(jobs=count, batch=min(PAGE, count), seconds=math.inf)

    def cleanup(self) -> int | None:
        return self._store.cleanup(older_than=timedelta(0)).jobs

    def close(self) -> None:
        self._store.close()
        self._gone.close()


@contextmanager
def sqlite() -> Iterator[Contestant]:
    with tempfile.TemporaryDirectory(prefix="queue-benchmark-") as folder:
        path = Path(folder) / "queue.sqlite"
        contestant = Ours("SQLite", lambda policy: QueueJobStore(QueueFile(path), policy=policy))
        try:
            yield contestant
        finally:
            contestant.close()


@contextmanager
def neo4j() -> Iterator[Contestant]:
    with tempfile.TemporaryDirectory(prefix="queue-benchmark-") as folder:
        server = production_server(QUEUE, home=Path(folder))
        server.start()
        try:
            address = server.address
            database = Neo4jDatabase(
                address.uri,
                user=address.user,
                password=address.password,
                database=address.database,
            )
            schema.prepare_queue(database)
            contestant = Ours(
                "Neo4j", lambda policy: Neo4jJobStore(Neo4jQueue(database), policy=policy)
            )
            yield contestant
            contestant.close()
        finally:
            server.kill()


@contextmanager
def postgres() -> Iterator[Contestant]:
    with postgres_server() as url, postgres_queue.own_schema(url) as place:
        contestant = Ours(
            "PostgreSQL", lambda policy: postgres_queue.open_jobs(place, policy=policy)
        )
        try:
            yield contestant
        finally:
            contestant.close()
