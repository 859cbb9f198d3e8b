"""The SQLite side of the queue contracts."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from embed_pipeline.domain.job import JobId
from embed_pipeline.domain.recovery import QueuePolicy
from embed_pipeline.domain.window import RateLimit
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.stores.queue.job_store import QueueJobStore
from embed_pipeline.stores.queue.rate_limiter import SharedRateLimiter
from embed_pipeline.stores.sqlite.queue.backend import QueueFile
from embed_pipeline_tests.clocks import FakeClock


def open_jobs(path: Path, *, policy: QueuePolicy | None = None) -> QueueJobStore:
    """By the host's clock, as another process would."""
    return QueueJobStore(QueueFile(path), policy=policy)


def connection_of(jobs: JobStore) -> AbstractContextManager[sqlite3.Connection]:
    """The store's own connection, which no other thread uses meanwhile."""
    assert isinstance(jobs, QueueJobStore)
    assert isinstance(jobs.database, QueueFile)
    return jobs.database.database.reading()


def run_sql(jobs: JobStore, statement: str, **parameters: object) -> list[sqlite3.Row]:
    """As another program might, by the store's own connection."""
    with connection_of(jobs) as connection:
        return connection.execute(statement, parameters).fetchall()


class SqliteQueueBackend:
    def __init__(self, path: Path, clock: FakeClock) -> None:
        self.path = path
        self.clock = clock
        self._files: list[QueueFile] = []
        self._queries: list[str] | None = None

    def open_store(self, *, policy: QueuePolicy | None = None) -> QueueJobStore:
        return QueueJobStore(self.open_file(), policy=policy)

    def open_limiter(self, *, provider: str, limit: RateLimit) -> SharedRateLimiter:
        return SharedRateLimiter(self.open_file(), provider=provider, limit=limit)

    def open_file(self) -> QueueFile:
        file = QueueFile(self.path, clock=self.clock)
        with file.database.reading() as connection:
            connection.set_trace_callback(self._saw)
        self._files.append(file)
        return file

    def alter(self, job_id: JobId, **fields: object) -> bool:
        assignments = ", ".join(f"{name} = ?" for name in fields)
        with self.raw() as connection:
            connection.execute(
                f"UPDATE embed_job SET {assignments} WHERE id = ?", (*fields.values(), job_id)
            )
        return True

    @contextmanager
    def counting_queries(self) -> Iterator[list[str]]:
        self._queries = []
        yield self._queries
        self._queries = None

    @contextmanager
    def raw(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self.path, isolation_level=None)
        try:
            yield connection
        finally:
            connection.close()

    def close(self) -> None:
        for file in self._files:
            file.close()

    def _saw(self, query: str) -> None:
        if self._queries is not None:
            self._queries.append(query)
