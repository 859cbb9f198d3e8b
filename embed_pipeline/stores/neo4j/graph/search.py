"""Search: few vectors are all compared, many are asked of the vector index, which is made here.

The index answers for the whole graph, so more is asked of it than wanted, and what is not
valid, of another type or of another model is left out after it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from embed_pipeline.domain.embedding import FIRST_PROPERTY, ModelRecord
from embed_pipeline.domain.entity import EntityMapping
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.errors import SchemaMissing
from embed_pipeline.ports.clock import SystemClock
from embed_pipeline.stores.graph.transaction import Counts, Scored, Search
from embed_pipeline.stores.neo4j.driver.database import Neo4jDatabase, Row
from embed_pipeline.stores.neo4j.graph import cypher
from embed_pipeline.stores.neo4j.graph.mapping import filled, vector_names

COMPARE_ALL = 1_000
"""Up to so many vectors a search is exact; above, the index finds them approximately."""

OVERFETCH, GROWTH, MOST_FETCHED = 4, 4, 16_000
"""How much more is asked of the index than wanted, and how far that grows when filters eat it."""

COUNTS_KEPT_FROM, COUNTS_KEPT_FOR = 10_000, 30.0
"""Entities, seconds: to count a large graph takes longer than to search it, so a search reports
numbers that are a little old."""

ONLINE_WITHIN = 30
"""Seconds that a search waits for an index that is still being filled."""

_PLACES = 6
"""Neo4j computes in float32: equal vectors have equal scores, but not the last bits of them."""


class KeptCounts:
    """Counts by what was asked, for a while where they are large."""

    def __init__(self) -> None:
        self._clock = SystemClock()
        self._kept: dict[Hashable, tuple[float, Counts]] = {}

    def of(self, asked: Hashable, count: Callable[[], Counts]) -> Counts:
        now = self._clock.monotonic()
        kept_at, counts = self._kept.get(asked, (0.0, None))
        if counts is None or now - kept_at > COUNTS_KEPT_FOR:
            counts = count()
            if counts.entities >= COUNTS_KEPT_FROM:
                self._kept[asked] = now, counts
        return counts


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFound:
    name: str
    is_online: bool
    dimensions: int | None


class VectorIndexes:
    """The vector indexes of one graph, and the search through them."""

    def __init__(self, database: Neo4jDatabase, mapping: EntityMapping) -> None:
        self._database = database
        self._mapping = mapping

    def nearest(self, search: Search) -> tuple[list[Scored], int]:
        record, searched = search.record, search.counts.vectors
        asked: dict[str, Any] = {
            "of": record.vector_property,
            "query": search.query.tolist(),
            "model": record.model,
            "dimensions": record.dimensions,
            "entity_type": search.entity_type,
        }
        if searched <= COMPARE_ALL:
            rows = self._read(cypher.SCAN_VECTORS, **asked)
            searched = len(rows)
        else:
            rows = self._from_index(record, search.limit, asked)
        # Neo4j's score is (1 + cosine) / 2.
        scored = [(-round(2 * row["score"] - 1, _PLACES), EntityUid(row["uid"])) for row in rows]
        return scored, searched

    def _from_index(self, record: ModelRecord, limit: int, asked: dict[str, Any]) -> list[Row]:
        """As many as wanted, if the index has them; asked for more until the filters leave
        enough."""
        index = self._online(record)
        nearest = max(limit * OVERFETCH, 100)
        while True:
            found = self._read(cypher.NEAREST, index=index, nearest=nearest, **asked)
            hits = [row for row in found if row["score"] is not None]
            if len(hits) >= limit or len(found) < nearest or nearest >= MOST_FETCHED:
                return hits
            nearest = min(nearest * GROWTH, MOST_FETCHED)

    def _online(self, record: ModelRecord) -> str:
        index = self.check(record)
        if index is None:
            raise SchemaMissing(
                f"There is no vector index on {self._mapping.label}.{record.vector_property}:"
                " run `embed-pipeline init`."
            )
        if not index.is_online:
            self._read(cypher.AWAIT_INDEX, index=index.name, seconds=ONLINE_WITHIN)
        return index.name

    def check(self, record: ModelRecord) -> IndexFound | None:
        """The index over the model's vectors: ours, or one that was there before us.

        A second one on the same property would silently not be made, so a wrong one is refused.
        """
        found = self._find(kind="VECTOR", on=record.vector_property)
        # Without dimensions of its own an index takes vectors of any.
        if found is not None and found.dimensions not in (None, record.dimensions):
            raise SchemaMissing(
                f"The vector index {found.name} on {self._mapping.label}.{record.vector_property}"
                f" is for {found.dimensions} dimensions, {record.model} has {record.dimensions}:"
                " drop that index, or configure the model that it was made for."
            )
        return found

    def ensure(self, record: ModelRecord) -> None:
        """The vector index, and the one that finds a vector by the version of its text.

        An index that is there is not asked for again: even that would wait for every open writer.
        """
        on = record.vector_property
        if self.check(record) is None:
            self._create(cypher.CREATE_VECTOR_INDEX, record, record.index_name, "VECTOR", on)
            if self.check(record) is None:
                raise SchemaMissing(
                    f"The vector index on {self._mapping.label}.{on} cannot be made: something"
                    f" else in the graph is named {record.index_name}."
                )
        version = vector_names(on).version
        if self._find(kind="RANGE", on=version) is None:
            name = f"{version}_of_{self._mapping.label}"
            self._create(cypher.CREATE_VERSION_INDEX, record, name, "RANGE", version)

    def _create(self, statement: str, record: ModelRecord, name: str, kind: str, on: str) -> None:
        create = filled(statement, self._mapping, record.vector_property)
        try:
            self._database.write(
                lambda tx: tx.all(create, index=name, dimensions=record.dimensions)
            )
        except SchemaMissing:
            # Several may begin at once, and the server checks only before it waits for the other.
            if self._find(kind=kind, on=on) is None:
                raise

    def _find(self, *, kind: str, on: str) -> IndexFound | None:
        label = self._mapping.label
        for row in self._read(cypher.FIND_INDEX, kind=kind, label=label, property=on):
            is_online = row["state"] == "ONLINE"
            return IndexFound(name=row["name"], is_online=is_online, dimensions=row["dimensions"])
        return None

    def _read(self, statement: str, *, of: str = FIRST_PROPERTY, **parameters: object) -> list[Row]:
        query = filled(statement, self._mapping, of)
        return self._database.read(lambda tx: tx.all(query, **parameters))
