from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import pytest

from embed_pipeline.stores.sqlite.connection import Database
from embed_pipeline_tests.clocks import FakeClock
from embed_pipeline_tests.worker.logbook import Logbook, recording
from embed_pipeline_tests.worker.scene import World


class Build(Protocol):
    def __call__(self, **settings: Any) -> World: ...


@pytest.fixture
def build(tmp_path: Path, clock: FakeClock) -> Iterator[Build]:
    """Further worlds on the same files, as other processes would open them."""
    worlds: list[World] = []

    def build(**settings: Any) -> World:
        worlds.append(World(tmp_path, clock, **settings))
        return worlds[-1]

    yield build
    for world in worlds:
        world.close()


@pytest.fixture
def world(build: Build) -> World:
    return build()


@pytest.fixture
def transactions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The transactions of a test so far: "queue", "graph", or "read of" one of them."""
    found: list[str] = []
    transaction, reading = Database.transaction, Database.reading

    def counted(database: Database) -> AbstractContextManager[sqlite3.Connection]:
        found.append(database.path.stem)
        return transaction(database)

    def counted_reading(database: Database) -> AbstractContextManager[sqlite3.Connection]:
        found.append(f"read of {database.path.stem}")
        return reading(database)

    monkeypatch.setattr(Database, "transaction", counted)
    monkeypatch.setattr(Database, "reading", counted_reading)
    return found


@pytest.fixture
def logs() -> Iterator[Logbook]:
    with recording() as logbook:
        yield logbook
