"""The graph in Neo4j: the mapped label of a database that other programs use too.

Nothing of theirs is touched: the labels that say where an entity stands, the properties around a
vector and the nodes `:EmbeddingModel`, `:EmbeddingCursor` and `:EmbeddingGraph` are ours, the
mapped properties are written only when a caller says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import Any, TypeVar

from neo4j.exceptions import Neo4jError

from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.embedding import (
    FIRST_PROPERTY,
    ModelRecord,
    StoredVector,
    VectorWrite,
    embedded_label,
)
from embed_pipeline.domain.entity import Entity
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.domain.partition import ERASED, NO_KEY, AuditCounts
from embed_pipeline.domain.reserved_names import NEO4J, refuse_misfits
from embed_pipeline.errors import PageTooLarge
from embed_pipeline.stores.graph.transaction import (
    Change,
    Examined,
    GraphDatabase,
    GraphTransaction,
    Known,
    Scored,
    Search,
    Uids,
    in_batches,
)
from embed_pipeline.stores.neo4j.driver.database import Neo4jDatabase, Row, Tx
from embed_pipeline.stores.neo4j.driver.error_codes import TOO_LARGE
from embed_pipeline.stores.neo4j.graph import cypher, cypher_labels, rows
from embed_pipeline.stores.neo4j.graph.changes import mark_changed, mark_dependents
from embed_pipeline.stores.neo4j.graph.index import VectorIndexes
from embed_pipeline.stores.neo4j.graph.mapping import filled
from embed_pipeline.stores.neo4j.graph.names import (
    EXCLUDED,
    MARKER,
    NOTHING,
    QUEUED,
    UNSEEN,
    own,
    vector_names,
)
from embed_pipeline.stores.neo4j.graph.search import VectorSearch

T = TypeVar("T")
REASONS = {"no_key": NO_KEY, "erased": ERASED}


class Neo4jGraphTransaction(GraphTransaction):
    statements = cypher
    read_batch = 250
    """What the server holds in memory at once to answer."""

    def __init__(self, tx: Tx, mapping: Collection) -> None:
        self._tx = tx
        self._mapping = mapping

    def all(self, statement: str, *, of: str = FIRST_PROPERTY, **parameters: Any) -> list[Row]:
        if "uids" in parameters:
            parameters["uids"] = rows.keys_of(parameters["uids"], self._mapping)
        if "after" in parameters:
            parameters["after"] = rows.start_of(parameters["after"], self._mapping)
        return self._tx.all(filled(statement, self._mapping, of), **parameters)

    def _collected(
        self, statement: str, *, of: str = FIRST_PROPERTY, **parameters: Any
    ) -> list[Any]:
        """What a statement `found`, in one row: the driver takes long over a row."""
        (row,) = self.all(statement, of=of, **parameters)
        found: list[Any] = row["found"]
        return found

    def entity_of(self, row: Row) -> Entity:
        return rows.entity_of(row["entity"], self._mapping)

    def known(self, statement: str, *, of: str, **parameters: object) -> list[Known]:
        found = self._collected(statement, of=of, **parameters)
        return [self._known(entity, [facts], labels, of=[of]) for entity, facts, labels in found]

    def vector_of(self, row: Row) -> StoredVector:
        return rows.stored_vector(row)

    def read_entities(self, uids: Uids) -> list[Entity]:
        return [
            rows.entity_of(values, self._mapping)
            for part in in_batches(uids, self.read_batch)
            for values in self._collected(cypher.READ_ENTITIES, uids=part)
        ]

    def create_missing(self, changes: Sequence[Change], *, of: str) -> list[Known]:
        changed = [rows.change_row(change, self._mapping) for change in changes]
        return self.known(cypher.CREATE_MISSING, of=of, rows=changed)

    def lock_entities(
        self, uids: Uids, *, of: Sequence[str], create: bool = False, measure: bool = True
    ) -> list[Known]:
        lock = cypher.LOCK_ENTITIES if measure else cypher.LOCK_UNMEASURED
        vectors = [vector_names(name).as_parameter() for name in of]
        found = self._collected(
            cypher.LOCK_OR_CREATE if create else lock, uids=uids, vectors=vectors
        )
        return [self._known(entity, facts, labels, of=of) for entity, facts, labels in found]

    def _known(
        self,
        entity: Sequence[Any],
        facts: Sequence[Any],
        labels: Sequence[Any],
        *,
        of: Sequence[str],
    ) -> Known:
        return Known(
            entity=rows.entity_of(entity, self._mapping),
            facts=dict(zip(of, map(rows.facts_of, facts), strict=True)),
            labels=rows.labels_of(labels, self._mapping, of=of),
        )

    def save(self, changes: Sequence[Change]) -> None:
        if changes:
            changed = [rows.change_row(change, self._mapping) for change in changes]
            self.all(cypher.SAVE_CHANGES, rows=changed)

    def missing_in_window(
        self, *, of: str, after: EntityUid, size: int, window: int
    ) -> tuple[list[Known], EntityUid | None]:
        statement = cypher.MISSING_IN_WINDOW
        (row,) = self.all(statement, of=of, after=after, size=size, window=window)
        found = [self._known(e, [facts], labels, of=[of]) for e, facts, labels in row["found"]]
        return found, EntityUid(str(row["last"])) if row["examined"] == window else None

    def examine(self, *, of: str, model: str, after: EntityUid, size: int) -> Examined:
        found = self._collected(cypher.NEXT_WITH_LABELS, of=of, after=after, size=size)
        label = embedded_label(of)
        embedded, right, others = {label, own(label, self._mapping)}, [], []
        for values in found:
            if rows.is_right(values, self._mapping, labels=embedded, model=model):
                right.append(EntityUid(str(values[0][0])))
            else:
                entity, facts, labels = values
                others.append(self._known(entity, [facts], labels, of=[of]))
        last = EntityUid(str(found[-1][0][0])) if len(found) == size else None
        return Examined(right=right, others=others, last=last)

    def write_vectors(
        self, writes: Sequence[VectorWrite], *, record: ModelRecord, unmark: Set[EntityUid]
    ) -> None:
        packed = self._tx.speaks_vectors
        written = rows.HiddenRows(
            rows.written_row(write, self._mapping, unmark=write.uid in unmark, packed=packed)
            for write in writes
        )
        try:
            self.all(
                cypher.WRITE_VECTORS,
                of=record.vector_property,
                rows=written,
                vector_property=record.vector_property,
                model=record.model,
            )
        except Neo4jError as error:
            if TOO_LARGE not in (error.message or ""):
                raise
            # The worker writes the others of the page without it.
            raise PageTooLarge(
                "The graph cannot index an entity's type or end of validity: it is longer than "
                "about 8 kB."
            ) from error
        # The driver's transaction and its results hold each other and what was sent, until the
        # garbage collector comes: many pages of vectors later.
        written.clear()

    def models(self, *, lock: bool = False) -> tuple[ModelRecord, ...]:
        if lock:
            self.all(cypher.LOCK_REGISTRY)
        return super().models()


class Neo4jGraph(GraphDatabase):
    entities_per_write = 1_000
    vectors_per_write = 250
    """Larger transactions hold locks and memory for longer and gain nothing."""

    def __init__(self, database: Neo4jDatabase, *, mapping: Collection) -> None:
        refuse_misfits(mapping, NEO4J)
        self.mapping = mapping
        self._database = database
        self._search = VectorSearch(database, mapping)
        self._indexes = VectorIndexes(database, mapping)
        self._indexed: set[str] = set()

    def read(self, work: Callable[[Neo4jGraphTransaction], T]) -> T:
        return self._database.read(lambda tx: work(self._transaction(tx)))

    def write(self, work: Callable[[Neo4jGraphTransaction], T]) -> T:
        return self._database.write(lambda tx: work(self._transaction(tx)))

    def _transaction(self, tx: Tx) -> Neo4jGraphTransaction:
        return Neo4jGraphTransaction(tx, self.mapping)

    def nearest(self, search: Search) -> list[Scored]:
        return self._search.nearest(search)

    def end_audit(self, *, of: str, repair: bool) -> AuditCounts:
        """Where all nodes of the label belong, only the labels of other nodes are looked for."""
        (row,) = self.read(lambda tx: tx.all(cypher_labels.COUNT_MEMBERS, of=of))
        outside = max(row["nodes"] - row["entities"], 0)
        shared = (embedded_label(of), MARKER, QUEUED)
        single = {own(name, self.mapping) for name in (shared[0], NOTHING, EXCLUDED, UNSEEN)}
        strays = (*shared, *sorted(single.difference(shared)))
        statements = [cypher_labels.remove_stray(one, shared=one in shared) for one in strays]
        if outside:
            statements.append(cypher_labels.EXCLUDE_OTHERS)
        repaired = sum(self._repair(s, of=of) for s in statements) if repair else 0
        return AuditCounts(excluded=outside, repaired=repaired)

    def _repair(self, statement: str, *, of: str) -> int:
        """All that the statement finds, a transaction per batch."""
        repaired, last = 0, self.entities_per_write
        while last == self.entities_per_write:
            (row,) = self.write(
                lambda tx: tx.all(statement, of=of, size=self.entities_per_write, **REASONS)
            )
            last = row["repaired"]
            repaired += last
        return repaired

    def ensure_indexes(self, record: ModelRecord, *, check_only: bool = False) -> None:
        """Once in a process: every run asks."""
        if check_only:
            self._indexes.check(record)
        elif record.model not in self._indexed:
            self._indexes.ensure(record)
            self._indexed.add(record.model)

    def mark_changed(self) -> int:
        return sum(mark(self._database, self.mapping) for mark in (mark_changed, mark_dependents))

    def close(self) -> None:
        self._database.close()
