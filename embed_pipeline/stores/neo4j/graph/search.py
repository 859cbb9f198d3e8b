"""Search: few vectors are all compared, many are asked of the vector index.

More is asked of the index than wanted, and what is not valid, of another type or of another model
is left out after it. An index that filters by itself has left most of that out already.
"""

from __future__ import annotations

from typing import Any

from neo4j.exceptions import Neo4jError

from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.embedding import FIRST_PROPERTY, ModelRecord
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.errors import SchemaMissing, StoreBusy
from embed_pipeline.stores.graph.transaction import Scored, Search
from embed_pipeline.stores.neo4j.driver.database import Neo4jDatabase, Row
from embed_pipeline.stores.neo4j.graph import cypher
from embed_pipeline.stores.neo4j.graph.index import VectorIndex, VectorIndexes, place_of
from embed_pipeline.stores.neo4j.graph.mapping import filled
from embed_pipeline.stores.neo4j.graph.names import quoted

COMPARE_ALL = 1_000
"""Up to so many vectors a search is exact; above, the index finds them approximately."""

COMPARE_MEANWHILE = 10_000
"""Up to so many they are all compared while the index is still being built."""

OVERFETCH, GROWTH, MOST_FETCHED = 4, 4, 16_000
"""How much more is asked of the index than wanted, and how far that grows when filters eat it."""

_PLACES = 6
"""Neo4j computes in float32: equal vectors have equal scores, but not the last bits of them."""


class VectorSearch:
    """The search of one graph; its index may be replaced at any time."""

    def __init__(self, database: Neo4jDatabase, mapping: Collection) -> None:
        self._database = database
        self._mapping = mapping
        self._indexes = VectorIndexes(database, mapping)

    def nearest(self, search: Search) -> list[Scored]:
        record = search.record
        asked: dict[str, Any] = {
            "of": record.vector_property,
            "query": search.query.tolist(),
            "model": record.model,
            "dimensions": record.dimensions,
            "entity_type": search.entity_type,
        }
        if search.embedded <= COMPARE_ALL:
            index = None
        else:
            index = self._index(record, may_compare=search.embedded <= COMPARE_MEANWHILE)
        if index is None:
            rows = self._read(cypher.SCAN_VECTORS, **asked)
        else:
            rows = self._from_index(index, search, asked)
        # Neo4j's score is (1 + cosine) / 2.
        return [(-round(2 * row["score"] - 1, _PLACES), EntityUid(str(row["uid"]))) for row in rows]

    def _index(self, record: ModelRecord, *, may_compare: bool) -> VectorIndex | None:
        """The best that is online; None where all may be compared until one is."""
        found = self._indexes.find(record)
        for index in found:
            if index.is_online and index.takes(record):
                return index
        own = next((index for index in found if index.label == record.embedded_label), None)
        if own is None:
            raise SchemaMissing(
                f"There is no vector index on {place_of(record)}: run `embed-pipeline init`."
            )
        if may_compare:
            return None
        if difference := self._indexes.difference(own, record):
            raise SchemaMissing(
                f"The vector index {own.name} {difference}: "
                "run `embed-pipeline init --rebuild-index`."
            )
        raise StoreBusy(
            f"The vector index {own.name} is still being built ({own.percent:.0f} %): "
            "search again when it is done; `embed-pipeline doctor` shows how far it is."
        )

    def _from_index(self, index: VectorIndex, search: Search, asked: dict[str, Any]) -> list[Row]:
        """Asked once more if the index was replaced between the two statements."""
        try:
            return self._ask(index, search, asked)
        except (SchemaMissing, Neo4jError):
            another = self._index(search.record, may_compare=False)
            if another is None or another.name == index.name:
                raise
            return self._ask(another, search, asked)

    def _ask(self, index: VectorIndex, search: Search, asked: dict[str, Any]) -> list[Row]:
        """As many as wanted, if the index has them; asked for more until the filters leave
        enough."""
        statement = self._statement(index, search)
        nearest = max(search.limit * OVERFETCH, 100)
        while True:
            found = self._read(statement, index=index.name, nearest=nearest, **asked)
            hits = [row for row in found if row["score"] is not None]
            if len(hits) >= search.limit or len(found) < nearest or nearest >= MOST_FETCHED:
                return hits
            nearest = min(nearest * GROWTH, MOST_FETCHED)

    def _statement(self, index: VectorIndex, search: Search) -> str:
        """The name of an index cannot be a parameter of SEARCH, and its filters are text too."""
        if not self._indexes.can_filter:
            return cypher.NEAREST_BY_PROCEDURE
        filters = []
        if self._mapping.valid_to in index.properties:
            filters.append(f"e.{quoted(self._mapping.valid_to)} IS NULL")
        if search.entity_type is not None and self._mapping.type_property in index.properties:
            filters.append(f"e.{quoted(self._mapping.type_property)} = $entity_type")
        where = " WHERE " + " AND ".join(filters) if filters else ""
        return cypher.nearest_by_search(quoted(index.name), where)

    def _read(self, statement: str, *, of: str = FIRST_PROPERTY, **parameters: object) -> list[Row]:
        query = filled(statement, self._mapping, of)
        return self._database.read(lambda tx: tx.all(query, **parameters))
