"""The SQLite side of the entity-store contracts."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.embedding import ModelRecord, ModelState, Vector
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.domain.partition import Labels
from embed_pipeline.domain.recipe import TextValue
from embed_pipeline.stores.graph.entity_store import GraphEntityStore
from embed_pipeline.stores.sqlite.graph.backend import SqliteGraph
from embed_pipeline_tests.clocks import FakeClock

COLUMNS = {
    "Embedded": "embedded",
    "NothingToEmbed": "nothing_to_embed",
    "EmbeddingExcluded": "embedding_excluded",
    "NeedsEmbedding": "needs_embedding",
    "EmbeddingQueued": "embedding_queued",
}
"""By the label that Neo4j has instead."""


class SqliteGraphBackend:
    mapping = Collection()

    def __init__(self, path: Path, clock: FakeClock) -> None:
        self.path = path
        self.clock = clock
        self._stores: list[GraphEntityStore] = []

    def open_store(self, *, mapping: Collection | None = None) -> GraphEntityStore:
        store = GraphEntityStore(
            SqliteGraph(self.path, mapping=mapping or Collection(), clock=self.clock)
        )
        self._stores.append(store)
        return store

    def insert(self, uid: EntityUid, *, name: str, observations: TextValue) -> None:
        self._run(
            "INSERT INTO Entity (uid, name, observations, needs_embedding)"
            " VALUES (:uid, :name, :observations, 0)",
            {"uid": uid, "name": name, "observations": _theirs(observations)},
        )

    def set_text(self, uid: EntityUid, name: str, value: TextValue) -> None:
        self._run(
            f'UPDATE Entity SET "{name}" = :value WHERE uid = :uid',
            {"uid": uid, "value": _theirs(value)},
        )

    def set_end(self, uid: EntityUid, value: object) -> None:
        self._run("UPDATE Entity SET validTo = :end WHERE uid = :uid", {"uid": uid, "end": value})

    def remove(self, uid: EntityUid) -> None:
        self._run("DELETE FROM Entity WHERE uid = :uid", {"uid": uid})

    def drop_vector(self, uid: EntityUid) -> None:
        self._run("DELETE FROM embedding_vectors WHERE uid = :uid", {"uid": uid})

    def relabel_vector(self, uid: EntityUid, model: str) -> None:
        self._run(
            "UPDATE embedding_vectors SET model = :model WHERE uid = :uid",
            {"uid": uid, "model": model},
        )

    def replace_vector(self, uid: EntityUid, vector: Vector) -> None:
        self._run(
            "UPDATE embedding_vectors SET vector = :vector WHERE uid = :uid",
            {"uid": uid, "vector": vector.tobytes()},
        )

    def add_model(self, record: ModelRecord) -> None:
        graph = SqliteGraph(self.path, mapping=self.mapping, clock=self.clock)
        with closing(graph):
            graph.write(lambda tx: tx.add_model(record))

    def set_state(self, model: str, state: ModelState) -> None:
        self._run(
            "UPDATE embedding_models SET state = :state WHERE model = :model",
            {"model": model, "state": state.value},
        )

    def is_marked(self, uid: EntityUid) -> bool:
        with self.raw() as connection:
            query = "SELECT needs_embedding FROM Entity WHERE uid = ?"
            return bool(connection.execute(query, (uid,)).fetchone()[0])

    def has_vector(self, uid: EntityUid, *, model: str | None = None) -> bool:
        query = "SELECT 1 FROM embedding_vectors WHERE uid = ? AND model = coalesce(?, model)"
        with self.raw() as connection:
            return connection.execute(query, (uid, model)).fetchone() is not None

    def labels_of(self, uid: EntityUid) -> Labels:
        columns = ", ".join(COLUMNS.values())
        with self.raw() as connection:
            found = connection.execute(f"SELECT {columns} FROM Entity WHERE uid = ?", (uid,))
            embedded, nothing, excluded, marked, queued = found.fetchone()
        return Labels(
            embedded=frozenset(["Embedded"] if embedded else ()),
            nothing_to_embed=bool(nothing),
            excluded=excluded,
            marked=bool(marked),
            queued=bool(queued),
        )

    def set_label(self, uid: EntityUid, label: str, is_set: bool) -> None:
        value = ("theirs" if is_set else None) if label == "EmbeddingExcluded" else int(is_set)
        self._run(
            f"UPDATE Entity SET {COLUMNS[label]} = :value WHERE uid = :uid",
            {"uid": uid, "value": value},
        )

    @contextmanager
    def raw(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self.path, isolation_level=None)
        try:
            yield connection
        finally:
            connection.close()

    def close(self) -> None:
        for store in self._stores:
            store.close()

    def _run(self, statement: str, parameters: Mapping[str, object]) -> None:
        with self.raw() as connection:
            connection.execute(statement, parameters)


def _theirs(value: TextValue) -> str | bytes | None:
    """Spaced otherwise than we write it: what counts is the list, not its spelling."""
    return json.dumps(value, indent=2).encode() if isinstance(value, tuple) else value
