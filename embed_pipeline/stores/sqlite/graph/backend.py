"""The graph in one SQLite file: the embedded default, and a graph for tests.

Threads share one connection behind a lock, processes the file; only a single page or chunk is
read under the lock at a time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from embed_pipeline.domain.embedding import ModelRecord, StoredVector, VectorFacts, VectorWrite
from embed_pipeline.domain.entity import Entity, EntityMapping
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.domain.reserved_names import SQLITE, refuse_misfits
from embed_pipeline.ports.clock import Clock, SystemClock
from embed_pipeline.stores.encoding import to_ms
from embed_pipeline.stores.graph.models import model_of
from embed_pipeline.stores.graph.transaction import (
    Counts,
    GraphDatabase,
    GraphTransaction,
    Query,
    Scored,
    WithFacts,
)
from embed_pipeline.stores.sqlite.connection import Database
from embed_pipeline.stores.sqlite.graph import rows, search, sql
from embed_pipeline.stores.sqlite.graph.schema import schema_for
from embed_pipeline.stores.sqlite.queue.rows import as_list

T = TypeVar("T")


class SqliteGraphTransaction(GraphTransaction):
    """The write lock is held from the beginning, so what is read cannot change before the end."""

    def __init__(self, connection: sqlite3.Connection, mapping: EntityMapping, now: int) -> None:
        self._connection = connection
        self._mapping = mapping
        self._now = now
        """Milliseconds, read under the lock."""

    def all(self, statement: str, **parameters: object) -> list[sqlite3.Row]:
        return self._connection.execute(sql.filled(statement, self._mapping), parameters).fetchall()

    def _entities(self, statement: str, **parameters: object) -> list[Entity]:
        return [rows.entity_of(row, self._mapping) for row in self.all(statement, **parameters)]

    def _with_facts(self, statement: str, **parameters: object) -> list[WithFacts]:
        found = self.all(statement, **parameters)
        return [(rows.entity_of(row, self._mapping), rows.facts_of(row)) for row in found]

    def _each(self, statement: str, parameters: Iterable[Any]) -> None:
        self._connection.executemany(sql.filled(statement, self._mapping), parameters)

    # -- entities ---------------------------------------------------------------------------

    def read_entities(self, uids: Sequence[EntityUid]) -> list[Entity]:
        return self._entities(sql.READ_ENTITIES, uids=as_list(uids))

    def find_by_name(self, name: str, *, limit: int) -> list[Entity]:
        return self._entities(sql.FIND_BY_NAME, name=name, limit=limit)

    def create_missing(
        self, entities: Sequence[Entity], *, vector_property: str
    ) -> list[WithFacts]:
        found = self.read_with_facts([e.uid for e in entities], vector_property=vector_property)
        there = {entity.uid for entity, _ in found}
        self.save_entities([(entity, None) for entity in entities if entity.uid not in there])
        return found

    def lock_entities(
        self, uids: Sequence[EntityUid], *, vector_properties: Sequence[str], create: bool = False
    ) -> list[tuple[Entity, Mapping[str, VectorFacts | None]]]:
        facts: dict[EntityUid, dict[str, VectorFacts | None]] = {uid: {} for uid in uids}
        if vector_properties:
            for row in self.all(
                sql.READ_FACTS, uids=as_list(uids), properties=as_list(vector_properties)
            ):
                facts[row["uid"]][row["property"]] = rows.facts_of(row)
        return [(entity, facts[entity.uid]) for entity in self.read_entities(uids)]

    def save_entities(self, changes: Sequence[tuple[Entity, Entity | None]]) -> None:
        self._each(
            sql.SAVE_ENTITY,
            (rows.saved_values(entity, self._mapping, now=self._now) for entity, _ in changes),
        )

    def clear_markers(self, uids: Collection[EntityUid]) -> None:
        self.all(sql.CLEAR_MARKERS, uids=as_list(uids))

    def soft_delete(self, uids: Sequence[EntityUid]) -> list[EntityUid]:
        found = self.all(sql.SOFT_DELETE, uids=as_list(uids), now=self._now)
        return [EntityUid(row["uid"]) for row in found]

    # -- discovery --------------------------------------------------------------------------

    def read_with_facts(
        self, uids: Sequence[EntityUid], *, vector_property: str
    ) -> list[WithFacts]:
        return self._with_facts(sql.READ_WITH_FACTS, uids=as_list(uids), property=vector_property)

    def next_with_facts(
        self, *, vector_property: str, after: EntityUid, size: int, marked: bool = False
    ) -> list[WithFacts]:
        statement = sql.MARKED_WITH_FACTS if marked else sql.NEXT_WITH_FACTS
        return self._with_facts(statement, property=vector_property, after=after, size=size)

    def marked_without_vector(
        self, *, vector_property: str, after: EntityUid, size: int
    ) -> list[Entity]:
        return self._entities(
            sql.MARKED_WITHOUT_VECTOR, property=vector_property, after=after, size=size
        )

    def unmarked_without_vector(
        self, *, vector_property: str, after: EntityUid, size: int, window: int
    ) -> tuple[list[Entity], EntityUid | None]:
        """To the end of the graph: only keys are read of entities that have a vector."""
        found = self._entities(
            sql.UNMARKED_WITHOUT_VECTOR, property=vector_property, after=after, size=size
        )
        return found, None

    def cursor(self, name: str) -> EntityUid | None:
        found = self.all(sql.READ_CURSOR, name=name)
        return found[0]["uid"] if found else None

    def save_cursor(self, name: str, uid: EntityUid | None) -> None:
        self.all(sql.SAVE_CURSOR, name=name, uid=uid)

    # -- vectors and models -----------------------------------------------------------------

    def embedded_versions(
        self, uids: Sequence[EntityUid], *, record: ModelRecord
    ) -> dict[EntityUid, str]:
        found = self.all(sql.EMBEDDED_VERSIONS, uids=as_list(uids), **_of(record))
        return {EntityUid(row["uid"]): row["version"] for row in found}

    def vectors_of_versions(
        self, versions: Sequence[str], *, record: ModelRecord
    ) -> dict[str, StoredVector]:
        found = self.all(sql.VECTORS_OF_VERSIONS, versions=as_list(versions), **_of(record))
        return {row["version"]: rows.stored_vector(row) for row in found}

    def write_vectors(
        self, writes: Sequence[VectorWrite], *, record: ModelRecord, unmark: Collection[EntityUid]
    ) -> None:
        self._each(
            sql.WRITE_VECTOR, (rows.written_values(w, record, now=self._now) for w in writes)
        )
        self.clear_markers(unmark)

    def probe(self) -> None:
        self.all(sql.PROBE, now=self._now)

    def models(self, *, lock: bool = False) -> tuple[ModelRecord, ...]:
        return tuple(model_of(dict(row)) for row in self.all(sql.READ_MODELS))

    def add_model(self, record: ModelRecord) -> None:
        self.all(sql.ADD_MODEL, now=self._now, **asdict(record))

    def count(self, *, model: str, vector_property: str, entity_type: str | None) -> Counts:
        """Vectors are not counted: the search reads them all."""
        return Counts(entities=self.all(sql.COUNT_VALID, entity_type=entity_type)[0][0])


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

    def nearest(
        self,
        query: Query,
        *,
        record: ModelRecord,
        limit: int,
        entity_type: str | None,
        counts: Counts,
    ) -> tuple[list[Scored], int]:
        def scan(after: int, size: int) -> list[sqlite3.Row]:
            asked = {"after": after, "size": size, "entity_type": entity_type, **_of(record)}
            return self.read(lambda tx: tx.all(sql.SCAN_VECTORS, **asked))

        return search.nearest(query, scan, limit=limit, dimensions=record.dimensions)

    def ensure_indexes(self, record: ModelRecord, *, check_only: bool = False) -> None:
        """None: search is exact."""

    def close(self) -> None:
        self._database.close()


def _of(record: ModelRecord) -> dict[str, object]:
    return {
        "property": record.vector_property,
        "model": record.model,
        "dimensions": record.dimensions,
    }
