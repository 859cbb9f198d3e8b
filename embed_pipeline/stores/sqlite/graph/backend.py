"""The graph in one SQLite file: the embedded default, and a graph for tests.

Threads share one connection behind a lock, processes the file; only a single page or chunk is
read under the lock at a time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from embed_pipeline.domain.collection import Collection, KeyType
from embed_pipeline.domain.embedding import (
    FIRST_PROPERTY,
    ModelRecord,
    StoredVector,
    VectorWrite,
)
from embed_pipeline.domain.entity import Entity
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.domain.partition import AuditCounts
from embed_pipeline.domain.reserved_names import SQLITE, refuse_misfits
from embed_pipeline.ports.clock import Clock, SystemClock
from embed_pipeline.stores.encoding import to_ms
from embed_pipeline.stores.graph.discovery import START
from embed_pipeline.stores.graph.transaction import (
    Change,
    GraphDatabase,
    GraphTransaction,
    Known,
    Scored,
    Search,
    Uids,
)
from embed_pipeline.stores.sqlite.connection import Database, as_list
from embed_pipeline.stores.sqlite.graph import rows, sql
from embed_pipeline.stores.sqlite.graph.label_schema import model_schema
from embed_pipeline.stores.sqlite.graph.mapping import filled
from embed_pipeline.stores.sqlite.graph.schema import schema_for
from embed_pipeline.stores.sqlite.graph.search import nearest

T = TypeVar("T")


class SqliteGraphTransaction(GraphTransaction):
    """The write lock is held from the beginning, so what is read cannot change before the end."""

    statements = sql

    def __init__(self, connection: sqlite3.Connection, mapping: Collection, now: int) -> None:
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
        if bound.get("after") == START and self._mapping.key_type is KeyType.INTEGER:
            bound["after"] = float("-inf")  # every text is behind every number
        query = filled(statement, self._mapping, of)
        return self._connection.execute(
            query, {"property": of, "now": self._now} | bound
        ).fetchall()

    def entity_of(self, row: sqlite3.Row) -> Entity:
        return rows.entity_of(row, self._mapping)

    def known(self, statement: str, *, of: str, **parameters: object) -> list[Known]:
        return [
            Known(
                entity=rows.entity_of(row, self._mapping),
                facts={of: rows.facts_of(row)},
                labels=rows.labels_of(row, of=of),
            )
            for row in self.all(statement, of=of, **parameters)
        ]

    def vector_of(self, row: sqlite3.Row) -> StoredVector:
        return rows.stored_vector(row)

    def read_entities(self, uids: Uids) -> list[Entity]:
        return self.entities(sql.READ_ENTITIES, uids=uids)

    def create_missing(self, changes: Sequence[Change], *, of: str) -> list[Known]:
        uids = [change.entity.uid for change in changes]
        found = self.known(sql.READ_WITH_FACTS, of=of, uids=uids)
        there = {known.entity.uid for known in found}
        self.save([change for change in changes if change.entity.uid not in there])
        return found

    def lock_entities(
        self, uids: Uids, *, of: Sequence[str], create: bool = False, measure: bool = True
    ) -> list[Known]:
        found: dict[EntityUid, Known] = {}
        for name in of or [FIRST_PROPERTY]:
            for one in self.known(sql.READ_WITH_FACTS, of=name, uids=uids):
                known = found.get(one.entity.uid, one)
                labels = replace(known.labels, embedded=known.labels.embedded | one.labels.embedded)
                found[one.entity.uid] = replace(
                    known, facts={**known.facts, **one.facts}, labels=labels
                )
        return list(found.values())

    def save(self, changes: Sequence[Change]) -> None:
        saved = [change for change in changes if change.entity is not change.before]
        values = (rows.saved_values(change, self._mapping, now=self._now) for change in saved)
        self._many(sql.SAVE_ENTITY, values)
        existing = [change for change in changes if change.before is not None]
        for of in self._vector_properties() if existing else ():
            self._many(sql.SAVE_LABELS, (rows.label_values(c, of=of) for c in existing), of=of)
        for statement, dropped in (
            (sql.DROP_VECTOR, [(c.entity.uid, of) for c in existing for of in c.dropped]),
            (sql.DISOWN_VECTOR, [(c.entity.uid, of) for c in existing for of in c.disowned]),
        ):
            self._many(statement, ({"uid": uid, "property": of} for uid, of in dropped))

    def _many(self, statement: str, values: Iterable[Any], *, of: str = FIRST_PROPERTY) -> None:
        self._connection.executemany(filled(statement, self._mapping, of), values)

    def _vector_properties(self) -> list[str]:
        return [record.vector_property for record in self.models()] or [FIRST_PROPERTY]

    def missing_in_window(
        self, *, of: str, after: EntityUid, size: int, window: int
    ) -> tuple[list[Known], EntityUid | None]:
        """The index has the missing ones alone, so many are found as few are."""
        page = self.known(sql.MISSING, of=of, after=after, size=size)
        return page, page[-1].entity.uid if len(page) == size else None

    def add_model(self, record: ModelRecord) -> None:
        super().add_model(record)
        for statement in model_schema(record.vector_property):
            self.all(statement, of=record.vector_property)

    def write_vectors(
        self, writes: Sequence[VectorWrite], *, record: ModelRecord, unmark: Set[EntityUid]
    ) -> None:
        values = (rows.written_values(write, record, now=self._now) for write in writes)
        self._many(sql.WRITE_VECTOR, values)
        uids = [write.uid for write in writes]
        self.all(sql.LABEL_EMBEDDED, of=record.vector_property, uids=uids)
        self.all(sql.CLEAR_MARKERS, uids=list(unmark))


class SqliteGraph(GraphDatabase):
    """Commits survive a power loss: a caller may rely on what was reported as stored."""

    def __init__(self, path: Path, *, mapping: Collection, clock: Clock | None = None) -> None:
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

    def end_audit(self, *, of: str, repair: bool) -> AuditCounts:
        if repair:
            self.write(lambda tx: tx.all(sql.COUNT_AGAIN, of=of))
        return AuditCounts()

    def ensure_indexes(self, record: ModelRecord, *, check_only: bool = False) -> None:
        """None: search is exact."""

    def close(self) -> None:
        self._database.close()
