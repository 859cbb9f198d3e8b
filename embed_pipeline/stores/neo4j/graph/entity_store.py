"""The knowledge graph in Neo4j: the mapped label of a database that other people use too.

This is the port's face; each noun has its module. Nothing of other people's is touched: the
marker label, the properties around a vector and the nodes `:EmbeddingModel`, `:EmbeddingCursor`
and `:EmbeddingGraph` are ours, the mapped properties are written only when a caller says so.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

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
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline.stores.neo4j.driver.database import Neo4jDatabase
from embed_pipeline.stores.neo4j.graph import models as model_registry
from embed_pipeline.stores.neo4j.graph import records as entity_records
from embed_pipeline.stores.neo4j.graph import search as vector_search
from embed_pipeline.stores.neo4j.graph import vectors as vector_records
from embed_pipeline.stores.neo4j.graph import walk as entity_walk
from embed_pipeline.stores.neo4j.graph.backend import Graph
from embed_pipeline.stores.neo4j.graph.cypher import entities as cypher


class Neo4jEntityStore(EntityStore):
    """`close` closes the database too: give each store its own, or close none but the last."""

    def __init__(self, database: Neo4jDatabase, *, mapping: EntityMapping) -> None:
        self._graph = Graph(database, mapping=mapping)
        self._counts = vector_search.Counts()

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
        rows = self._graph.read(lambda session: session.all(cypher.READ_CURSOR, name=name))
        return rows[0]["uid"] if rows else None

    def save_cursor(self, name: str, uid: EntityUid | None) -> None:
        self._graph.write(lambda session: session.all(cypher.SAVE_CURSOR, name=name, uid=uid))

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
        self._graph.write(lambda session: session.all(cypher.PROBE))

    # -- models, coverage, search -----------------------------------------------------------

    def models(self) -> tuple[ModelRecord, ...]:
        return self._graph.read(model_registry.read_models)

    def register_first_model(self, model: str, *, dimensions: int) -> ModelRecord | None:
        return model_registry.register_first(self._graph, model, dimensions=dimensions)

    def coverage(self, *, model: str) -> Coverage:
        return entity_walk.coverage(self._graph, model=model)

    def search(
        self, vector: Vector, *, model: str, limit: int = 10, entity_type: str | None = None
    ) -> SearchResult:
        return vector_search.search(
            self._graph,
            vector,
            model=model,
            limit=limit,
            entity_type=entity_type,
            counts=self._counts,
        )

    def close(self) -> None:
        self._graph.database.close()
