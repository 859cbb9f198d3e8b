"""The graph's file as the parts of its store use it: the mapping's statements, and the clock."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from embed_pipeline.domain.entity import Entity, EntityMapping
from embed_pipeline.ports.clock import Clock, SystemClock
from embed_pipeline.stores.encoding import to_ms
from embed_pipeline.stores.sqlite.connection import Database
from embed_pipeline.stores.sqlite.graph import rows as entity_rows
from embed_pipeline.stores.sqlite.graph.schema import check_mapping, schema_for
from embed_pipeline.stores.sqlite.graph.sql import filled


class GraphSession:
    """A look or a transaction; `now_ms` is read when it begins, under the lock."""

    def __init__(self, connection: sqlite3.Connection, mapping: EntityMapping, now: int) -> None:
        self.mapping = mapping
        self.now_ms = now
        self._connection = connection

    def all(self, statement: str, **parameters: object) -> list[sqlite3.Row]:
        return self._connection.execute(filled(statement, self.mapping), parameters).fetchall()

    def entities(self, statement: str, **parameters: object) -> list[Entity]:
        rows = self.all(statement, **parameters)
        return [entity_rows.entity_of(row, self.mapping) for row in rows]

    def run(self, statement: str, **parameters: object) -> None:
        self._connection.execute(filled(statement, self.mapping), parameters)

    def run_each(
        self, statement: str, parameters: Iterable[Sequence[object] | dict[str, object]]
    ) -> None:
        self._connection.executemany(filled(statement, self.mapping), parameters)


class GraphFile:
    """Commits survive a power loss: what a caller was told is in the graph stays there."""

    def __init__(self, path: Path, *, mapping: EntityMapping, clock: Clock | None = None) -> None:
        check_mapping(mapping)
        self.mapping = mapping
        self._clock = clock or SystemClock()
        self._database = Database(path, schema=schema_for(path, mapping), synchronous="FULL")

    @contextmanager
    def transaction(self) -> Iterator[GraphSession]:
        with self._database.transaction() as connection:
            yield GraphSession(connection, self.mapping, self._now_ms())

    @contextmanager
    def reading(self) -> Iterator[GraphSession]:
        with self._database.reading() as connection:
            yield GraphSession(connection, self.mapping, self._now_ms())

    def close(self) -> None:
        self._database.close()

    def _now_ms(self) -> int:
        return to_ms(self._clock.now())
