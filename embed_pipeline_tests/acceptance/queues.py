"""Which queue the processes of a crash test share: a file in their home, or a PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from embed_pipeline.ports.clock import Clock
from embed_pipeline.stores.config import Server
from embed_pipeline.stores.postgres.queue.backend import PostgresQueue
from embed_pipeline.stores.queue.transaction import QueueDatabase
from embed_pipeline.stores.sqlite.queue.backend import QueueFile
from embed_pipeline_tests.stores.postgres_queue import own_schema

NOTE = "postgres.json"


def queue_at(home: Path, *, clock: Clock | None = None) -> QueueDatabase:
    note = home / NOTE
    if note.exists():
        return PostgresQueue(Server(**json.loads(note.read_text())), clock=clock)
    return QueueFile(home / "queue.sqlite", clock=clock)


@contextmanager
def home_on_postgres(home: Path, url: str) -> Iterator[Path]:
    with own_schema(url) as server:
        (home / NOTE).write_text(json.dumps(asdict(server)))
        yield home
