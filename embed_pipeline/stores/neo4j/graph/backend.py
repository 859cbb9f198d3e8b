"""The graph in Neo4j: the mapped label of a database that other programs use too.

Nothing of theirs is touched: the marker label, the properties around a vector and the nodes
`:EmbeddingModel`, `:EmbeddingCursor` and `:EmbeddingGraph` are ours, the mapped properties are
written only when a caller says so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
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
from embed_pipeline.stores.graph.models import model_of
from embed_pipeline.stores.graph.transaction import (
    Counts,
    GraphDatabase,
    GraphTransaction,
    Query,
    Scored,
    WithFacts,
    in_batches,
)
from embed_pipeline.stores.neo4j.driver.database import Neo4jDatabase, Row, Tx
from embed_pipeline.stores.neo4j.graph import rows, search
from embed_pipeline.stores.neo4j.graph.cypher import entities as cypher
from embed_pipeline.stores.neo4j.graph.cypher import vectors as vector_cypher
from embed_pipeline.stores.neo4j.graph.mapping import filled, vector_names

T = TypeVar("T")

READ_BATCH = 250
"""Entities or vectors that the server holds in memory at once to answer."""


class Neo4jGraphTransaction(GraphTransaction):
    def __init__(self, tx: Tx, mapping: EntityMapping, counts: search.KeptCounts) -> None:
        self._tx = tx
        self._mapping = mapping
        self._counts = counts

    def all(self, statement: str, *, of: str = FIRST_PROPERTY, **parameters: object) -> list[Row]:
        """`of` names the vector property that the statement is about."""
        return self._tx.all(filled(statement, self._mapping, of), **parameters)

    def _collected(
        self, statement: str, *, of: str = FIRST_PROPERTY, **parameters: object
    ) -> list[Any]:
        """What a statement `found`, in one row: the driver takes longer over a row than over what
        is in it."""
        (row,) = self.all(statement, of=of, **parameters)
        found: list[Any] = row["found"]
        return found

    def _entities(self, values: Iterable[Sequence[Any]]) -> list[Entity]:
        return [rows.entity_of(one, self._mapping) for one in values]

    def _with_facts(self, pairs: Iterable[tuple[Any, Any]]) -> list[WithFacts]:
        return [(rows.entity_of(e, self._mapping), rows.facts_of(facts)) for e, facts in pairs]

    # -- entities ---------------------------------------------------------------------------

    def read_entities(self, uids: Sequence[EntityUid]) -> list[Entity]:
        return self._entities(
            values
            for part in in_batches(uids, READ_BATCH)
            for values in self._collected(cypher.READ_ENTITIES, uids=part)
        )

    def find_by_name(self, name: str, *, limit: int) -> list[Entity]:
        found = self.all(cypher.FIND_BY_NAME, name=name, limit=limit)
        return self._entities(row["entity"] for row in found)

    def create_missing(
        self, entities: Sequence[Entity], *, vector_property: str
    ) -> list[WithFacts]:
        changes = [rows.changed_row(entity, None, self._mapping) for entity in entities]
        return self._with_facts(
            self._collected(cypher.CREATE_MISSING, of=vector_property, rows=changes)
        )

    def lock_entities(
        self, uids: Sequence[EntityUid], *, vector_properties: Sequence[str], create: bool = False
    ) -> list[tuple[Entity, Mapping[str, VectorFacts | None]]]:
        found = self._collected(
            cypher.LOCK_OR_CREATE if create else cypher.LOCK_ENTITIES,
            uids=uids,
            vectors=[vector_names(name).as_parameter() for name in vector_properties],
        )
        return [
            (
                rows.entity_of(values, self._mapping),
                dict(zip(vector_properties, map(rows.facts_of, all_facts), strict=True)),
            )
            for values, all_facts in found
        ]

    def save_entities(self, changes: Sequence[tuple[Entity, Entity | None]]) -> None:
        changed = [rows.changed_row(entity, before, self._mapping) for entity, before in changes]
        self.all(cypher.SAVE_ENTITIES, rows=changed)

    def clear_markers(self, uids: Sequence[EntityUid]) -> None:
        self.all(cypher.CLEAR_MARKERS, uids=uids)

    def soft_delete(self, uids: Sequence[EntityUid]) -> list[EntityUid]:
        return [EntityUid(row["uid"]) for row in self.all(cypher.SOFT_DELETE, uids=uids)]

    # -- discovery --------------------------------------------------------------------------

    def read_with_facts(
        self, uids: Sequence[EntityUid], *, vector_property: str
    ) -> list[WithFacts]:
        found = self.all(cypher.READ_WITH_FACTS, of=vector_property, uids=uids)
        return self._with_facts((row["entity"], row["facts"]) for row in found)

    def next_with_facts(
        self, *, vector_property: str, after: EntityUid, size: int, marked: bool = False
    ) -> list[WithFacts]:
        statement = cypher.MARKED_WITH_FACTS if marked else cypher.NEXT_WITH_FACTS
        found = self.all(statement, of=vector_property, after=after, size=size)
        return self._with_facts((row["entity"], row["facts"]) for row in found)

    def marked_without_vector(
        self, *, vector_property: str, after: EntityUid, size: int
    ) -> list[Entity]:
        found = self.all(cypher.MARKED_WITHOUT_VECTOR, of=vector_property, after=after, size=size)
        return self._entities(row["entity"] for row in found)

    def unmarked_without_vector(
        self, *, vector_property: str, after: EntityUid, size: int, window: int
    ) -> tuple[list[Entity], EntityUid | None]:
        (row,) = self.all(
            cypher.UNMARKED_WITHOUT_VECTOR,
            of=vector_property,
            after=after,
            size=size,
            window=window,
        )
        return self._entities(row["found"]), row["last"] if row["examined"] == window else None

    def cursor(self, name: str) -> EntityUid | None:
        found = self.all(cypher.READ_CURSOR, name=name)
        return found[0]["uid"] if found else None

    def save_cursor(self, name: str, uid: EntityUid | None) -> None:
        self.all(cypher.SAVE_CURSOR, name=name, uid=uid)

    # -- vectors and models -----------------------------------------------------------------

    def embedded_versions(
        self, uids: Sequence[EntityUid], *, record: ModelRecord
    ) -> dict[EntityUid, str]:
        found = self.all(vector_cypher.EMBEDDED_VERSIONS, uids=uids, **_of(record))
        return {EntityUid(row["uid"]): row["version"] for row in found}

    def vectors_of_versions(
        self, versions: Sequence[str], *, record: ModelRecord
    ) -> dict[str, StoredVector]:
        return {
            row["version"]: rows.stored_vector(row)
            for part in in_batches(versions, READ_BATCH)
            for row in self.all(vector_cypher.VECTORS_OF_VERSIONS, versions=part, **_of(record))
        }

    def write_vectors(
        self, writes: Sequence[VectorWrite], *, record: ModelRecord, unmark: Collection[EntityUid]
    ) -> None:
        packed = self._tx.speaks_vectors
        written = rows.HiddenRows(
            rows.written_row(write, unmark=write.uid in unmark, packed=packed) for write in writes
        )
        self.all(
            vector_cypher.WRITE_VECTORS,
            of=record.vector_property,
            rows=written,
            vector_property=record.vector_property,
            model=record.model,
        )
        # The driver's transaction and its results hold each other and what was sent, until the
        # garbage collector comes: many pages of vectors later.
        written.clear()

    def probe(self) -> None:
        self.all(cypher.PROBE)

    def models(self, *, lock: bool = False) -> tuple[ModelRecord, ...]:
        if lock:
            self.all(cypher.LOCK_REGISTRY)
        return tuple(model_of(row) for row in self.all(cypher.READ_MODELS))

    def add_model(self, record: ModelRecord) -> None:
        self.all(cypher.ADD_MODEL, record={**asdict(record), "state": record.state.value})

    def count(self, *, model: str, vector_property: str, entity_type: str | None) -> Counts:
        def count() -> Counts:
            (row,) = self.all(
                vector_cypher.COUNT_SEARCHABLE,
                of=vector_property,
                model=model,
                entity_type=entity_type,
            )
            return Counts(entities=row["entities"], vectors=row["vectors"])

        return self._counts.of((model, entity_type), count)


class Neo4jGraph(GraphDatabase):
    entities_per_write = 1_000
    vectors_per_write = 250
    """Larger transactions hold locks and memory for longer and gain nothing."""

    def __init__(self, database: Neo4jDatabase, *, mapping: EntityMapping) -> None:
        refuse_misfits(mapping, NEO4J)
        self.mapping = mapping
        self._database = database
        self._counts = search.KeptCounts()
        self._indexes = search.VectorIndexes(database, mapping)
        self._indexed: set[str] = set()

    def read(self, work: Callable[[Neo4jGraphTransaction], T]) -> T:
        return self._database.read(lambda tx: work(self._transaction(tx)))

    def write(self, work: Callable[[Neo4jGraphTransaction], T]) -> T:
        return self._database.write(lambda tx: work(self._transaction(tx)))

    def _transaction(self, tx: Tx) -> Neo4jGraphTransaction:
        return Neo4jGraphTransaction(tx, self.mapping, self._counts)

    def nearest(
        self,
        query: Query,
        *,
        record: ModelRecord,
        limit: int,
        entity_type: str | None,
        counts: Counts,
    ) -> tuple[list[Scored], int]:
        return self._indexes.nearest(
            query, record=record, limit=limit, entity_type=entity_type, counts=counts
        )

    def ensure_indexes(self, record: ModelRecord, *, check_only: bool = False) -> None:
        """Once in a process: every run asks."""
        if check_only:
            self._indexes.check(record)
        elif record.model not in self._indexed:
            self._indexes.ensure(record)
            self._indexed.add(record.model)

    def close(self) -> None:
        self._database.close()


def _of(record: ModelRecord) -> dict[str, Any]:
    return {
        "of": record.vector_property,
        "model": record.model,
        "dimensions": record.dimensions,
    }
