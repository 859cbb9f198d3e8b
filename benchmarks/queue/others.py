"""procrastinate and pgqueuer on PostgreSQL.

By the bare calls that their workers make, as ours is called here. pgqueuer takes and completes in
batches (`dequeue`, `log_jobs`); its worker, on psycopg, is many times slower than these calls,
because its listener holds the connection. procrastinate fetches and finishes one job at a time,
whatever the concurrency. Both enqueue in batches.
"""

from __future__ import annotations

import asyncio
import math
import time
import uuid
from datetime import timedelta

import procrastinate
import psycopg
from pgqueuer.db import PsycopgDriver
from pgqueuer.models import Job
from pgqueuer.queries import EntrypointExecutionParameter, Queries
from pgqueuer.types import QueueEntrypoint, QueueManagerId
from procrastinate.jobs import Status

from benchmarks.queue.contestant import FIRST, PAGE, USUAL, Contestant, Worked

SILENCE = timedelta(seconds=1)
"""After so long without a heartbeat pgqueuer gives a job to another worker."""

ENTRYPOINT = QueueEntrypoint("embed")
PAYLOAD = b'{"entity": "one", "version": "of its text"}'


class PgQueuer(Contestant):
    name = "pgqueuer"

    def __init__(self, url: str) -> None:
        self._runner = asyncio.Runner()
        self._queries = self._runner.run(self._connect(url))
        self._manager = QueueManagerId(uuid.uuid4())
        self._again: list[list[Job]] = []

    async def _connect(self, url: str) -> Queries:
        self._connection = await psycopg.AsyncConnection.connect(url, autocommit=True)
        queries = Queries(PsycopgDriver(self._connection))
        await queries.install()
        return queries

    def enqueue(self, count: int, priority: int = USUAL) -> None:
        self._runner.run(self._enqueue(count, priority))

    async def _enqueue(self, count: int, priority: int) -> None:
        for start in range(0, count, PAGE):
            many = min(PAGE, count - start)
            await self._queries.enqueue([ENTRYPOINT] * many, [PAYLOAD] * many, [priority] * many)

    def work(self, *, jobs: int, batch: int, seconds: float) -> Worked:
        return self._runner.run(self._work(jobs, batch, seconds))

    async def _work(self, jobs: int, batch: int, seconds: float) -> Worked:
        worked = Worked()
        began = time.perf_counter()
        while worked.jobs < jobs and time.perf_counter() - began < seconds:
            before = time.perf_counter()
            taken = await self._dequeue(batch)
            worked.leases.append(time.perf_counter() - before)
            await self._complete(taken)
            worked.jobs += len(taken)
        worked.seconds = time.perf_counter() - began
        return worked

    async def _dequeue(self, batch: int) -> list[Job]:
        taken = await self._queries.dequeue(
            batch_size=batch,
            entrypoints={ENTRYPOINT: EntrypointExecutionParameter(concurrency_limit=0)},
            queue_manager_id=self._manager,
            global_concurrency_limit=None,
            heartbeat_timeout=SILENCE,
        )
        assert len(taken) == batch, (len(taken), batch)
        return taken

    async def _complete(self, taken: list[Job]) -> None:
        await self._queries.log_jobs([(job, "successful", None) for job in taken])

    def abandon(self, count: int) -> None:
        self.enqueue(count, FIRST)
        self._runner.run(self._dequeue_all(count))
        time.sleep(SILENCE.total_seconds())

    def recover(self, count: int) -> None:
        """Its recovery is that the silent ones are picked again."""
        self._again = self._runner.run(self._dequeue_all(count))

    async def _dequeue_all(self, count: int) -> list[list[Job]]:
        pages = [min(PAGE, count - start) for start in range(0, count, PAGE)]
        return [await self._dequeue(page) for page in pages]

    def settle(self, count: int) -> None:
        for page in self._again:
            self._runner.run(self._complete(page))

    def cleanup(self) -> int | None:
        return None

    def close(self) -> None:
        self._runner.run(self._connection.close())
        self._runner.close()


class Procrastinate(Contestant):
    name = "procrastinate"
    takes_many = False

    def __init__(self, url: str) -> None:
        self._runner = asyncio.Runner()
        connector = procrastinate.PsycopgConnector(conninfo=url, min_size=1, max_size=1)
        self._app = procrastinate.App(connector=connector)
        self._task = self._app.task(name="embed")(_embed)
        self._done = 0
        self._worker = self._runner.run(self._open())

    async def _open(self) -> int:
        await self._app.open_async()
        await self._app.schema_manager.apply_schema_async()
        return await self._app.job_manager.register_worker()

    def enqueue(self, count: int, priority: int = USUAL) -> None:
        self._runner.run(self._enqueue(count, priority))

    async def _enqueue(self, count: int, priority: int) -> None:
        for start in range(0, count, PAGE):
            rows = [{"entity": "one"} for _ in range(min(PAGE, count - start))]
            await self._task.configure(priority=priority).batch_defer_async(*rows)

    def work(self, *, jobs: int, batch: int, seconds: float) -> Worked:
        return self._runner.run(self._work(jobs, seconds))

    async def _work(self, jobs: int, seconds: float) -> Worked:
        worked = Worked()
        began = time.perf_counter()
        while worked.jobs < jobs and time.perf_counter() - began < seconds:
            before = time.perf_counter()
            job = await self._fetch()
            worked.leases.append(time.perf_counter() - before)
            await self._app.job_manager.finish_job(job, Status.SUCCEEDED, delete_job=False)
            worked.jobs += 1
        worked.seconds = time.perf_counter() - began
        self._done += worked.jobs
        return worked

    async def _fetch(self) -> procrastinate.jobs.Job:
        job = await self._app.job_manager.fetch_job(queues=None, worker_id=self._worker)
        assert job is not None
        return job

    def abandon(self, count: int) -> None:
        self.enqueue(count, FIRST)
        self._runner.run(self._fetch_many(count))

    async def _fetch_many(self, count: int) -> None:
        for _ in range(count):
            await self._fetch()

    def recover(self, count: int) -> None:
        """As its documentation does it: every stalled job is retried by itself."""
        self._runner.run(self._retry_stalled(count))

    async def _retry_stalled(self, count: int) -> None:
        manager = self._app.job_manager
        stalled = list(await manager.get_stalled_jobs(seconds_since_heartbeat=-1))
        assert len(stalled) == count, len(stalled)
        for job in stalled:
            await manager.retry_job(job)

    def settle(self, count: int) -> None:
        self.work(jobs=count, batch=1, seconds=math.inf)

    def cleanup(self) -> int | None:
        self._runner.run(self._app.job_manager.delete_old_jobs(nb_hours=0))
        deleted, self._done = self._done, 0
        return deleted

    def close(self) -> None:
        self._runner.run(self._app.close_async())
        self._runner.close()


def _embed(entity: str) -> None:
    """Never called: only the queue is measured."""
