"""The PostgreSQL side of the queue contracts."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from embed_pipeline.domain.job import JobId
from embed_pipeline.domain.recovery import QueuePolicy
from embed_pipeline.domain.window import RateLimit
from embed_pipeline.ports.clock import Clock
from embed_pipeline.stores.config import Server
from embed_pipeline.stores.postgres.connection import PostgresDatabase
from embed_pipeline.stores.postgres.queue import schema
from embed_pipeline.stores.postgres.queue.backend import PostgresQueue
from embed_pipeline.stores.queue.job_store import QueueJobStore
from embed_pipeline.stores.queue.rate_limiter import SharedRateLimiter
from embed_pipeline_tests.clocks import FakeClock


def server_of(url: str, *, schema_name: str) -> Server:
    """The parts of a libpq URL, as the settings would pass them."""
    given = conninfo_to_dict(url)
    host, port = str(given["host"]), given.get("port", "5432")
    is_socket = host.startswith("/")
    return Server(
        uri=f"postgresql://?host={host}" if is_socket else f"postgresql://{host}:{port}",
        user=str(given["user"]),
        password=str(given.get("password", "")),
        database=str(given["dbname"]),
        schema=schema_name,
    )


def postgres_variables(url: str) -> dict[str, str]:
    """The settings of a queue of its own on this server."""
    server = server_of(url, schema_name=f"queue_{uuid.uuid4().hex[:12]}")
    return {
        "EMBED_QUEUE_STORE": "postgres",
        "EMBED_QUEUE_URI": server.uri,
        "EMBED_QUEUE_USER": server.user,
        "EMBED_QUEUE_PASSWORD": server.password,
        "EMBED_QUEUE_DATABASE": server.database,
        "EMBED_QUEUE_SCHEMA": server.schema,
    }


@contextmanager
def own_schema(url: str) -> Iterator[Server]:
    """A queue of its own on this server, removed at the end."""
    server = server_of(url, schema_name=f"queue {uuid.uuid4().hex[:12]}")
    create(server)
    yield server
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(server.schema))
        )


def create(server: Server) -> None:
    with closing(PostgresDatabase(server)) as database:
        database.write(partial(schema.create, schema=server.schema))


def open_jobs(
    server: Server, *, policy: QueuePolicy | None = None, clock: Clock | None = None
) -> QueueJobStore:
    """By the database's clock, as another process would."""
    return QueueJobStore(PostgresQueue(server, clock=clock), policy=policy)


class PostgresQueueBackend:
    def __init__(self, url: str, server: Server, clock: FakeClock) -> None:
        self.clock = clock
        self.server = server
        self._raw = psycopg.connect(url, autocommit=True)
        self._queues: list[PostgresQueue] = []
        tables = sql.SQL(", ").join(
            sql.Identifier(server.schema, table)
            for table in schema.TABLES
            if table != "queue_version"
        )
        self._raw.execute(sql.SQL("TRUNCATE {} RESTART IDENTITY").format(tables))

    def open_store(self, *, policy: QueuePolicy | None = None) -> QueueJobStore:
        return QueueJobStore(self.open_queue(), policy=policy)

    def open_limiter(self, *, provider: str, limit: RateLimit) -> SharedRateLimiter:
        return SharedRateLimiter(self.open_queue(), provider=provider, limit=limit)

    def open_queue(self) -> PostgresQueue:
        queue = PostgresQueue(self.server, clock=self.clock)
        self._queues.append(queue)
        return queue

    def alter(self, job_id: JobId, **fields: object) -> bool:
        assignments = sql.SQL(", ").join(
            sql.SQL("{} = {}").format(sql.Identifier(name), sql.Literal(value))
            for name, value in fields.items()
        )
        table = sql.Identifier(self.server.schema, "embed_job")
        statement = sql.SQL("UPDATE {} SET {} WHERE id = {}").format(table, assignments, job_id)
        try:
            self._raw.execute(statement)
        except (psycopg.ProgrammingError, psycopg.DataError, psycopg.IntegrityError):
            return False  # a value of another type
        return True

    @contextmanager
    def counting_queries(self) -> Iterator[list[str]]:
        seen: list[str] = []
        execute = psycopg.Connection.execute

        def noted(connection: object, query: object, *rest: object, **options: object) -> object:
            seen.append(str(query))
            return execute(connection, query, *rest, **options)  # type: ignore

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(psycopg.Connection, "execute", noted)
            yield seen

    def close(self) -> None:
        for queue in self._queues:
            queue.close()
        self._raw.close()
