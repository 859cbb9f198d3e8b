"""The graph in one SQLite file: the embedded default, and a graph for tests.

Threads share one connection behind a lock, processes the file; only a single page or chunk is
read under the lock at a time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from embed_pipeline.domain.embedding import (
    FIRST_PROPERTY,
    ModelRecord,
    StoredVector,
    VectorFacts,
    VectorWrite,
)
from embed_pipeline.domain.entity import Entity, EntityMapping
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.domain.reserved_names import SQLITE, refuse_misfits
from embed_pipeline.ports.clock import Clock, SystemClock
from embed_pipeline.stores.encoding import to_ms
from embed_pipeline.stores.graph.transaction import (
    GraphDatabase,
    GraphTransaction,
    Scored,
    Search,
    Uids,
    WithFacts,
)
from embed_pipeline.stores.sqlite.connection import Database, as_list
from embed_pipeline.stores.sqlite.graph import rows, sql
from embed_pipeline.stores.sqlite.graph.schema import schema_for
from embed_pipeline.stores.sqlite.graph.search import nearest

T = TypeVar("T")


class SqliteGraphTransaction(GraphTransaction):
    """The write lock is held from the beginning, so what is read cannot change before the end."""

    statements = sql

    def __init__(self, connection: sqlite3.Connection, mapping: EntityMapping, now: int) -> None:
        self._connection = connection
        self._mapping = mapping
        self._now = now
        """Milliseconds, read under the lock."""

    def all(
        self, statement: str, *, of: str = FIRST_PROPERTY, **parameters: object
    ) -> list[sqlite3.Row]:
        bound = {
            name: as_list(value) if isinstance(value, list | tuple) else value
            for name, value in parameters.items()
        }
        query = sql.filled(statement, self._mapping)
        return self._connection.execute(
            query, {"property": of, "now": self._now} | bound
        ).fetchall()

    def entity_of(self, row: sqlite3.Row) -> Entity:
        return rows.entity_of(row, self._mapping)

    def facts_of(self, row: sqlite3.Row) -> VectorFacts | None:
        return rows.facts_of(row)

    def vector_of(self, row: sqlite3.Row) -> StoredVector:
        return rows.stored_vector(row)

    def read_entities(self, uids: Uids) -> list[Entity]:
        return self.entities(sql.READ_ENTITIES, uids=uids)

    def create_missing(self, entities: Sequence[Entity], *, of: str) -> list[WithFacts]:
        uids = [entity.uid for entity in entities]
        found = self.with_facts(sql.READ_WITH_FACTS, of=of, uids=uids)
        there = {entity.uid for entity, _ in found}
        self.save_entities([(entity, None) for entity in entities if entity.uid not in there])
        return found

    def lock_entities(
        self, uids: Uids, *, of: Sequence[str], create: bool = False
    ) -> list[tuple[Entity, Mapping[str, VectorFacts | None]]]:
        if not of:
            return [(entity, {}) for entity in self.read_entities(uids)]
        found: dict[EntityUid, tuple[Entity, dict[str, VectorFacts | None]]] = {}
        for name in of:
            for entity, facts in self.with_facts(sql.READ_WITH_FACTS, of=name, uids=uids):
                found.setdefault(entity.uid, (entity, {}))[1][name] = facts
        return list(found.values())

    def save_entities(self, changes: Sequence[tuple[Entity, Entity | None]]) -> None:
        values = (rows.saved_values(entity, self._mapping, now=self._now) for entity, _ in changes)
        self._connection.executemany(sql.filled(sql.SAVE_ENTITY, self._mapping), values)

    def unmarked_without_vector(
        self, *, of: str, after: EntityUid, size: int, window: int
    ) -> tuple[list[Entity], EntityUid | None]:
        """To the end of the graph: only keys are read of entities that have a vector."""
        found = self.entities(sql.UNMARKED_WITHOUT_VECTOR, of=of, after=after, size=size)
        return found, None

    def write_vectors(
        self, writes: Sequence[VectorWrite], *, record: ModelRecord, unmark: Collection[EntityUid]
    ) -> None:
        values = (rows.written_values(write, record, now=self._now) for write in writes)
        self._connection.executemany(sql.WRITE_VECTOR, values)
        self.all(sql.CLEAR_MARKERS, uids=list(unmark))


class SqliteGraph(GraphDatabase):
    """Commits survive a power loss: a caller may rely on what was reported as stored."""

    def __init__(self, path: Path, *, mapping: EntityMapping, clock: Clock | None = None) -> None:
        refuse_misfits(mapping, SQLITE)
        self.mapping = mapping
        self._clock = clock or SystemClock()
        self._database = Database(path, schema=schema_for(path, mapping), synchronous="FULL")

    def read(self, work: Callable[[SqliteGraphTransaction], T]) -> T:
        with self._database.reading() as connection:
            return work(self._transaction(connection))

    def write(self, work: Callable[[SqliteGraphTransaction], T]) -> T:
        with self._database.transaction() as connection:
            return work(self._transaction(connection))

    def _transaction(self, connection: sqlite3.Connection) -> SqliteGraphTransaction:
        return SqliteGraphTransaction(connection, self.mapping, to_ms(self._clock.now()))

    def nearest(self, search: Search) -> list[Scored]:
        def scan(after: int, size: int) -> list[sqlite3.Row]:
            return self.read(
                lambda tx: tx.all(
                    sql.SCAN_VECTORS,
                    of=search.record.vector_property,
                    model=search.record.model,
                    dimensions=search.record.dimensions,
                    entity_type=search.entity_type,
                    after=after,
                    size=size,
                )
            )

        return nearest(search, scan)

    def ensure_indexes(self, record: ModelRecord, *, check_only: bool = False) -> None:
        """None: search is exact."""

    def close(self) -> None:
        self._database.close()
