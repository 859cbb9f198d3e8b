"""The knowledge graph in one SQLite file: the embedded default, and a graph for tests.

This is the port's face; each noun has its module. Threads share one connection behind a lock,
processes the file; only a single page or chunk is read under the lock at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from embed_pipeline.domain.embedding import (
    Bookmark,
    Coverage,
    Created,
    Discovery,
    ModelRecord,
    Page,
    SearchResult,
    StoredVector,
    Vector,
    VectorDefect,
    VectorWrite,
    WriteReport,
)
from embed_pipeline.domain.entity import Entity, EntityMapping, NewEntity
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.ports.clock import Clock
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline.stores.sqlite.graph import models as model_registry
from embed_pipeline.stores.sqlite.graph import records as entity_records
from embed_pipeline.stores.sqlite.graph import search as vector_search
from embed_pipeline.stores.sqlite.graph import sql
from embed_pipeline.stores.sqlite.graph import vectors as vector_records
from embed_pipeline.stores.sqlite.graph import walk as entity_walk
from embed_pipeline.stores.sqlite.graph.backend import GraphFile


class SqliteEntityStore(EntityStore):
    def __init__(self, path: Path, *, mapping: EntityMapping, clock: Clock | None = None) -> None:
        self._graph = GraphFile(path, mapping=mapping, clock=clock)

    @property
    def mapping(self) -> EntityMapping:
        return self._graph.mapping

    # -- entities ---------------------------------------------------------------------------

    def create_entities(self, entities: Sequence[NewEntity], *, model: str) -> tuple[Created, ...]:
        return entity_records.create(self._graph, entities, model=model)

    def upsert_entities(self, entities: Sequence[NewEntity], *, model: str) -> tuple[Created, ...]:
        return entity_records.upsert(self._graph, entities, model=model)

    def soft_delete(self, uids: Sequence[EntityUid]) -> tuple[EntityUid, ...]:
        return entity_records.soft_delete(self._graph, uids)

    def get_entity(self, uid: EntityUid) -> Entity | None:
        return self.read_entities([uid]).get(uid)

    def find_by_name(self, name: str, *, limit: int = 10) -> tuple[Entity, ...]:
        return entity_records.find_by_name(self._graph, name, limit=limit)

    def read_entities(self, uids: Sequence[EntityUid]) -> Mapping[EntityUid, Entity]:
        return entity_records.read(self._graph, uids)

    # -- discovery --------------------------------------------------------------------------

    def entities_without_embeddings(
        self, limit: int = 10, *, model: str, after: Bookmark | None = None
    ) -> Discovery:
        return entity_walk.without_vector(self._graph, limit, model=model, after=after)

    def changed_entities(
        self, *, model: str, limit: int, after: EntityUid | None = None
    ) -> tuple[Entity, ...]:
        return entity_walk.changed(self._graph, model=model, limit=limit, after=after)

    def walk(
        self, *, model: str, defects: Collection[VectorDefect], after: EntityUid | None, size: int
    ) -> Page:
        return entity_walk.walk(self._graph, model=model, defects=defects, after=after, size=size)

    def classify(
        self, uids: Sequence[EntityUid], *, model: str
    ) -> Mapping[EntityUid, VectorDefect | None]:
        return entity_walk.classify(self._graph, uids, model=model)

    def cursor(self, name: str) -> EntityUid | None:
        with self._graph.reading() as session:
            rows = session.all(sql.READ_CURSOR, name=name)
        return rows[0]["uid"] if rows else None

    def save_cursor(self, name: str, uid: EntityUid | None) -> None:
        with self._graph.transaction() as session:
            session.run(sql.SAVE_CURSOR, name=name, uid=uid)

    # -- vectors ----------------------------------------------------------------------------

    def embedded_versions(
        self, uids: Sequence[EntityUid], *, model: str
    ) -> Mapping[EntityUid, str]:
        return vector_records.versions(self._graph, uids, model=model)

    def vectors_of_versions(
        self, versions: Collection[str], *, model: str
    ) -> Mapping[str, StoredVector]:
        return vector_records.of_versions(self._graph, versions, model=model)

    def write_vectors(self, writes: Sequence[VectorWrite], *, model: str) -> WriteReport:
        return vector_records.write(self._graph, writes, model=model)

    def probe(self) -> None:
        with self._graph.transaction() as session:
            session.run(sql.PROBE, now=session.now_ms)

    # -- models, coverage, search -----------------------------------------------------------

    def models(self) -> tuple[ModelRecord, ...]:
        with self._graph.reading() as session:
            return model_registry.read_models(session)

    def register_first_model(self, model: str, *, dimensions: int) -> ModelRecord | None:
        return model_registry.register_first(self._graph, model, dimensions=dimensions)

    def coverage(self, *, model: str) -> Coverage:
        return entity_walk.coverage(self._graph, model=model)

    def search(
        self, vector: Vector, *, model: str, limit: int = 10, entity_type: str | None = None
    ) -> SearchResult:
        return vector_search.search(
            self._graph, vector, model=model, limit=limit, entity_type=entity_type
        )

    def close(self) -> None:
        self._graph.close()
