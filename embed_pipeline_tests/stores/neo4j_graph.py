"""The Neo4j side of the entity-store contracts."""

from __future__ import annotations

from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.embedding import ModelRecord, ModelState, Vector
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.domain.partition import Labels
from embed_pipeline.domain.recipe import TextValue
from embed_pipeline.ports.clock import Clock
from embed_pipeline.stores.graph.entity_store import GraphEntityStore
from embed_pipeline.stores.neo4j.driver.database import Neo4jDatabase
from embed_pipeline.stores.neo4j.graph.backend import Neo4jGraph
from embed_pipeline.stores.neo4j.setup import schema
from embed_pipeline_tests.clocks import FakeClock
from embed_pipeline_tests.neo4j_bed.client import BedServer

DELETE_ALL = """
MATCH (node) WHERE NOT node:EmbeddingGraph
CALL (node) { DETACH DELETE node } IN TRANSACTIONS OF 5000 ROWS
"""

FIND_SCHEMA = "MATCH (graph:EmbeddingGraph) RETURN graph.schema_version AS version"

ENTITY = "MATCH (e:Entity {uid: $uid}) "


class Neo4jGraphBackend:
    """Another program speaks Cypher past our store."""

    def __init__(self, server: BedServer, clock: FakeClock) -> None:
        self.server = server
        self.clock = clock
        self._stores: list[GraphEntityStore] = []

    def open_store(self, *, mapping: Collection | None = None) -> GraphEntityStore:
        database = database_of(self.server, clock=self.clock)
        store = GraphEntityStore(Neo4jGraph(database, mapping=mapping or Collection()))
        self._stores.append(store)
        return store

    def insert(self, uid: EntityUid, *, name: str, observations: TextValue) -> None:
        self.server.run(
            "CREATE (:Entity {uid: $uid, name: $name, observations: $observations})",
            uid=uid,
            name=name,
            observations=observations,
        )

    def set_text(self, uid: EntityUid, name: str, value: TextValue) -> None:
        self.server.run(ENTITY + "SET e += $properties", uid=uid, properties={name: value})

    def set_end(self, uid: EntityUid, value: object) -> None:
        self.server.run(ENTITY + "SET e.validTo = $end", uid=uid, end=value)

    def remove(self, uid: EntityUid) -> None:
        self.server.run(ENTITY + "DETACH DELETE e", uid=uid)

    def drop_vector(self, uid: EntityUid) -> None:
        self.server.run(ENTITY + "REMOVE e.embedding", uid=uid)

    def relabel_vector(self, uid: EntityUid, model: str) -> None:
        self.server.run(ENTITY + "SET e.embedding_model = $model", uid=uid, model=model)

    def replace_vector(self, uid: EntityUid, vector: Vector) -> None:
        self.server.run(ENTITY + "SET e.embedding = $numbers", uid=uid, numbers=vector.tolist())

    def add_model(self, record: ModelRecord) -> None:
        self.server.run(
            "CREATE (m:EmbeddingModel {model: $model, dimensions: $dimensions, state: $state,"
            " vector_property: $property, index_name: $index, registered_at: 9})",
            model=record.model,
            dimensions=record.dimensions,
            state=record.state.value,
            property=record.vector_property,
            index=record.index_name,
        )

    def set_state(self, model: str, state: ModelState) -> None:
        self.server.run(
            "MATCH (m:EmbeddingModel {model: $model}) SET m.state = $state",
            model=model,
            state=state.value,
        )

    def is_marked(self, uid: EntityUid) -> bool:
        (row,) = self.server.run(ENTITY + "RETURN e:NeedsEmbedding AS marked", uid=uid)
        return bool(row["marked"])

    def has_vector(self, uid: EntityUid, *, model: str | None = None) -> bool:
        where = "WHERE e.embedding IS NOT NULL AND e.embedding_model = coalesce($model, "
        found = self.server.run(
            ENTITY + where + "e.embedding_model) RETURN e.uid", uid=uid, model=model
        )
        return bool(found)

    def labels_of(self, uid: EntityUid) -> Labels:
        (row,) = self.server.run(
            ENTITY + "RETURN labels(e) AS names, e.embedding_excluded AS reason", uid=uid
        )
        names = set(row["names"])
        assert ("EmbeddingExcluded" in names) == (row["reason"] is not None)
        return Labels(
            embedded=frozenset(names & {"Embedded"}),
            nothing_to_embed="NothingToEmbed" in names,
            excluded=row["reason"],
            marked="NeedsEmbedding" in names,
            queued="EmbeddingQueued" in names,
        )

    def set_label(self, uid: EntityUid, label: str, is_set: bool) -> None:
        self.server.run(f"{ENTITY} {'SET' if is_set else 'REMOVE'} e:{label}", uid=uid)

    def close(self) -> None:
        for store in self._stores:
            store.close()


def database_of(server: BedServer, *, clock: Clock | None = None) -> Neo4jDatabase:
    return Neo4jDatabase(
        server.uri,
        user=server.user,
        password=server.password,
        database=server.database,
        clock=clock,
    )


def empty(server: BedServer, mapping: Collection | None = None) -> None:
    """Indexes stay, also those of vectors: every one that comes or goes makes all plans again.

    The first connection stays open for the module: the stores of its tests share the driver.
    """
    server.run(DELETE_ALL)
    if mapping is None and server.run(FIND_SCHEMA):
        return
    database = database_of(server)
    server.kept.callback(database.close)
    schema.prepare_graph(database, mapping or Collection())
