"""PostgreSQL, which keeps queues only: tables in a schema of their own, beside other programs'."""

from __future__ import annotations

from contextlib import closing
from functools import partial

from embed_pipeline.domain.check import CheckResult, check_clock, ok, problem
from embed_pipeline.errors import EmbedPipelineError, StoreAccessDenied
from embed_pipeline.ports.clock import SystemClock
from embed_pipeline.stores.config import Location, Server, StoreConfig
from embed_pipeline.stores.postgres.connection import PostgresDatabase
from embed_pipeline.stores.postgres.queue import schema
from embed_pipeline.stores.postgres.queue.backend import PostgresQueue
from embed_pipeline.stores.queue.job_store import OpenQueue, QueueJobStore

OLDEST = 13_00_00  # PostgreSQL 13, as the server itself counts its versions
_CLOCK = "SELECT clock_timestamp() AS now"


def open_queue(config: StoreConfig) -> OpenQueue:
    queue = PostgresQueue(_server(config), clock=config.clock, fail_fast=config.fail_fast)
    return OpenQueue(QueueJobStore(queue, policy=config.policy))


def locate_queue(config: StoreConfig) -> Location:
    with closing(_unchecked(config)) as database:
        database.read(partial(schema.refuse_foreign, schema=_server(config).schema))
        return Location(identity=f"postgresql {database.place}", place=database.place)


def initialise_queue(config: StoreConfig) -> list[str]:
    server = _server(config)
    with closing(_unchecked(config)) as database:
        database.write(partial(schema.create, schema=server.schema))
        return [f"The queue is ready in the schema {server.schema} of {database.place}."]


def diagnose_queue(config: StoreConfig) -> list[CheckResult]:
    """Each further check needs the one before, so the first that fails is the last."""
    server, clock = _server(config), config.clock or SystemClock()
    with closing(_unchecked(config)) as database:
        try:
            number = database.read(lambda connection: connection.info.server_version)
        except StoreAccessDenied as error:
            return [problem("queue", str(error), "Set EMBED_QUEUE_USER and _PASSWORD.")]
        except EmbedPipelineError as error:
            return [problem("queue", str(error), "Start the server, or set EMBED_QUEUE_URI.")]
        said = f"the database {database.place}: PostgreSQL {number // 10_000}.{number % 10_000}"
        if number < OLDEST:
            return [problem("queue", said, f"Use PostgreSQL {OLDEST // 10_000} or newer.")]
        before = clock.now()
        theirs = database.read(lambda connection: next(connection.execute(_CLOCK))["now"])
        skew = theirs - before - (clock.now() - before) / 2
        try:
            database.read(partial(schema.check, schema=server.schema))
            prepared = ok("queue schema", f"the tables are in the schema {server.schema}")
        except EmbedPipelineError as error:
            prepared = problem("queue schema", str(error), "embed-pipeline init")
    return [ok("queue", said), check_clock("queue", skew), prepared]


def _unchecked(config: StoreConfig) -> PostgresDatabase:
    return PostgresDatabase(_server(config), fail_fast=config.fail_fast)


def _server(config: StoreConfig) -> Server:
    assert config.queue is not None, "the settings refuse PostgreSQL without a server"
    return config.queue
