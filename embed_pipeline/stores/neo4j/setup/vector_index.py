"""The vector index in `init` and `doctor`: waited for, replaced when asked to, and reported.

A second index on the same label and properties is silently not made; with other ones both can
exist. So a new definition is built beside the old one, which search uses until then.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable

from embed_pipeline.domain.check import CheckResult, note, ok, problem
from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.embedding import ModelRecord
from embed_pipeline.errors import SchemaMissing
from embed_pipeline.stores.config import InitOptions
from embed_pipeline.stores.neo4j.driver.database import Neo4jDatabase
from embed_pipeline.stores.neo4j.graph.index import VectorIndexes, place_of
from embed_pipeline.stores.neo4j.graph.names import quoted

VECTORS_PER_SECOND = 200
"""How fast an index is built: a rough figure, measured on two busy cores. It depends little on the
length of the vectors: the server compares them by one bit per number."""

POLL_SECONDS = 0.5

_SAVE_INDEX_NAME = "MATCH (m:EmbeddingModel {model: $model}) SET m.index_name = $name"

_COUNT_EMBEDDED = "MATCH (e:{label}) RETURN count(e) AS entities"

REBUILD = "embed-pipeline init --rebuild-index"


class VectorIndexSetup:
    def __init__(self, database: Neo4jDatabase, mapping: Collection) -> None:
        self._database = database
        self._indexes = VectorIndexes(database, mapping)

    def prepare(self, record: ModelRecord, options: InitOptions) -> list[str]:
        """Make what is missing and wait for it; replace an index that differs if told to."""
        self._indexes.ensure(record)
        index = self._indexes.own(record)
        if index is not None and (difference := self._indexes.difference(index, record)):
            if not options.rebuild_index:
                return [
                    f"The vector index {index.name} on {place_of(record)} {difference}. "
                    f"`{REBUILD}` builds a new one in about {self._minutes(record)} min; "
                    "search goes on meanwhile."
                ]
            if index.properties == self._indexes.wanted(record):
                self._indexes.drop(index)  # the new one cannot be made beside it
            self._indexes.create(record)
        return self._switch(record, options)

    def _switch(self, record: ModelRecord, options: InitOptions) -> list[str]:
        """Wait for the new index, then drop those that it replaces, 0.1's among them."""
        while (index := self._indexes.own(record)) is not None and not index.is_online:
            if index.has_failed:
                break
            options.on_progress(f"building {index.name}", round(index.percent), 100)
            time.sleep(POLL_SECONDS)
        if index is None or index.has_failed:
            reason = self._indexes.difference(index, record) if index else "is gone again"
            raise SchemaMissing(f"The vector index on {place_of(record)} {reason}.")
        ours = {f"{record.vector_property}_index", record.index_name}
        replaced = [
            other
            for other in self._indexes.find(record)
            if other.name != index.name and (other.label == index.label or other.name in ours)
        ]
        for other in replaced:
            self._indexes.drop(other)
        if index.name != record.index_name:
            named = {"model": record.model, "name": index.name}
            self._database.write(lambda tx: tx.all(_SAVE_INDEX_NAME, **named))
        names = " and ".join(other.name for other in replaced)
        return [f"The vector index {index.name} has replaced {names}."] if names else []

    def _minutes(self, record: ModelRecord) -> int:
        count = _COUNT_EMBEDDED.format(label=quoted(record.embedded_label))
        entities: int = self._database.read(lambda tx: tx.one(count))["entities"]
        return math.ceil((entities + 1) / VECTORS_PER_SECOND / 60)

    def diagnose(self, records: Iterable[ModelRecord]) -> list[CheckResult]:
        return [self._diagnose(record) for record in records if record.takes_vectors]

    def _diagnose(self, record: ModelRecord) -> CheckResult:
        part, place = "vector index", place_of(record)
        index = self._indexes.own(record)
        if index is None:
            return problem(part, f"there is none on {place}", "embed-pipeline init")
        said = f"{index.name} on {place}"
        if difference := self._indexes.difference(index, record):
            result = note if index.is_online and index.takes(record) else problem
            return result(part, f"{said} {difference}", REBUILD)
        if not index.is_online:
            return note(part, f"{said} is being built: {index.percent:.0f} %")
        return ok(part, f"{said}, {record.dimensions} dimensions")
