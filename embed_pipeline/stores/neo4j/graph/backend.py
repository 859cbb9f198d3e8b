"""The graph in Neo4j: the mapped label of a database that other programs use too.

Nothing of theirs is touched: the marker label, the properties around a vector and the nodes
`:EmbeddingModel`, `:EmbeddingCursor` and `:EmbeddingGraph` are ours, the mapped properties are
written only when a caller says so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

from embed_pipeline.domain.embedding import (
    FIRST_PROPERTY,
    ModelRecord,
    StoredVector,
    VectorFacts,
    VectorWrite,
)
from embed_pipeline.domain.entity import Entity, EntityMapping
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.domain.reserved_names import NEO4J, refuse_misfits
from embed_pipeline.stores.graph.transaction import (
    Counts,
    GraphDatabase,
    GraphTransaction,
    Scored,
    Search,
    Uids,
    WithFacts,
    in_batches,
)
from embed_pipeline.stores.neo4j.driver.database import Neo4jDatabase, Row, Tx
from embed_pipeline.stores.neo4j.graph import cypher, rows
from embed_pipeline.stores.neo4j.graph.changes import mark_changed
from embed_pipeline.stores.neo4j.graph.mapping import filled, vector_names
from embed_pipeline.stores.neo4j.graph.search import KeptCounts, VectorIndexes

T = TypeVar("T")


class Neo4jGraphTransaction(GraphTransaction):
    statements = cypher
    read_batch = 250
    """What the server holds in memory at once to answer."""

    def __init__(self, tx: Tx, mapping: EntityMapping, counts: KeptCounts) -> None:
        self._tx = tx
        self._mapping = mapping
        self._counts = counts

    def all(self, statement: str, *, of: str = FIRST_PROPERTY, **parameters: object) -> list[Row]:
        return self._tx.all(filled(statement, self._mapping, of), **parameters)

    def _collected(
        self, statement: str, *, of: str = FIRST_PROPERTY, **parameters: object
    ) -> list[Any]:
        """What a statement `found`, in one row: the driver takes longer over a row than over what
        is in it."""
        (row,) = self.all(statement, of=of, **parameters)
        found: list[Any] = row["found"]
        return found

    def entity_of(self, row: Row) -> Entity:
        return rows.entity_of(row["entity"], self._mapping)

    def facts_of(self, row: Row) -> VectorFacts | None:
        return rows.facts_of(row["facts"])

    def vector_of(self, row: Row) -> StoredVector:
        return rows.stored_vector(row)

    def read_entities(self, uids: Uids) -> list[Entity]:
        return [
            rows.entity_of(values, self._mapping)
            for part in in_batches(uids, self.read_batch)
            for values in self._collected(cypher.READ_ENTITIES, uids=part)
        ]

    def create_missing(self, entities: Sequence[Entity], *, of: str) -> list[WithFacts]:
        changes = [rows.changed_row(entity, None, self._mapping) for entity in entities]
        return [
            (rows.entity_of(values, self._mapping), rows.facts_of(facts))
            for values, facts in self._collected(cypher.CREATE_MISSING, of=of, rows=changes)
        ]

    def lock_entities(
        self, uids: Uids, *, of: Sequence[str], create: bool = False
    ) -> list[tuple[Entity, Mapping[str, VectorFacts | None]]]:
        statement = cypher.LOCK_OR_CREATE if create else cypher.LOCK_ENTITIES
        vectors = [vector_names(name).as_parameter() for name in of]
        return [
            (
                rows.entity_of(values, self._mapping),
                dict(zip(of, map(rows.facts_of, all_facts), strict=True)),
            )
            for values, all_facts in self._collected(statement, uids=uids, vectors=vectors)
        ]

    def save_entities(self, changes: Sequence[tuple[Entity, Entity | None]]) -> None:
        changed = [rows.changed_row(entity, before, self._mapping) for entity, before in changes]
        self.all(cypher.SAVE_ENTITIES, rows=changed)

    def unmarked_without_vector(
        self, *, of: str, after: EntityUid, size: int, window: int
    ) -> tuple[list[Entity], EntityUid | None]:
        statement = cypher.UNMARKED_WITHOUT_VECTOR
        (row,) = self.all(statement, of=of, after=after, size=size, window=window)
        found = [rows.entity_of(values, self._mapping) for values in row["found"]]
        return found, row["last"] if row["examined"] == window else None

    def write_vectors(
        self, writes: Sequence[VectorWrite], *, record: ModelRecord, unmark: Collection[EntityUid]
    ) -> None:
        packed = self._tx.speaks_vectors
        written = rows.HiddenRows(
            rows.written_row(write, unmark=write.uid in unmark, packed=packed) for write in writes
        )
        self.all(
            cypher.WRITE_VECTORS,
            of=record.vector_property,
            rows=written,
            vector_property=record.vector_property,
            model=record.model,
        )
        # The driver's transaction and its results hold each other and what was sent, until the
        # garbage collector comes: many pages of vectors later.
        written.clear()

    def models(self, *, lock: bool = False) -> tuple[ModelRecord, ...]:
        if lock:
            self.all(cypher.LOCK_REGISTRY)
        return super().models()

    def count(self, *, of: str, model: str, entity_type: str | None) -> Counts:
        count = super().count
        return self._counts.of(
            (model, entity_type), lambda: count(of=of, model=model, entity_type=entity_type)
        )


class Neo4jGraph(GraphDatabase):
    entities_per_write = 1_000
    vectors_per_write = 250
    """Larger transactions hold locks and memory for longer and gain nothing."""

    def __init__(self, database: Neo4jDatabase, *, mapping: EntityMapping) -> None:
        refuse_misfits(mapping, NEO4J)
        self.mapping = mapping
        self._database = database
        self._counts = KeptCounts()
        self._indexes = VectorIndexes(database, mapping)
        self._indexed: set[str] = set()

    def read(self, work: Callable[[Neo4jGraphTransaction], T]) -> T:
        return self._database.read(lambda tx: work(self._transaction(tx)))

    def write(self, work: Callable[[Neo4jGraphTransaction], T]) -> T:
        return self._database.write(lambda tx: work(self._transaction(tx)))

    def _transaction(self, tx: Tx) -> Neo4jGraphTransaction:
        return Neo4jGraphTransaction(tx, self.mapping, self._counts)

    def nearest(self, search: Search) -> tuple[list[Scored], int]:
        return self._indexes.nearest(search)

    def ensure_indexes(self, record: ModelRecord, *, check_only: bool = False) -> None:
        """Once in a process: every run asks."""
        if check_only:
            self._indexes.check(record)
        elif record.model not in self._indexed:
            self._indexes.ensure(record)
            self._indexed.add(record.model)

    def mark_changed(self) -> int:
        return mark_changed(self._database, self.mapping)

    def close(self) -> None:
        self._database.close()
