"""Search: few vectors are all compared, many are asked of the vector index.

The index answers for the whole graph, so more is asked of it than wanted, and what is not
valid, of another type or of another model is left out after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from embed_pipeline.domain.embedding import (
    MOST_HITS,
    Hit,
    ModelRecord,
    SearchResult,
    Vector,
    check_limit,
    vector_problem,
)
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.errors import RequestError, SchemaMissing
from embed_pipeline.ports.clock import SystemClock
from embed_pipeline.stores.neo4j.driver.database import Row
from embed_pipeline.stores.neo4j.graph import records as entity_records
from embed_pipeline.stores.neo4j.graph.backend import Graph, GraphSession
from embed_pipeline.stores.neo4j.graph.cypher import vectors as cypher
from embed_pipeline.stores.neo4j.graph.models import find_model, property_of, vector_index

COMPARE_ALL = 1_000
"""Up to so many vectors a search is exact; above, the index finds them approximately."""

OVERFETCH, GROWTH, MOST_FETCHED = 4, 4, 16_000
"""How much more is asked of the index than wanted, and how far that grows when filters eat it."""

COUNTS_KEPT_FROM, COUNTS_KEPT_FOR = 10_000, 30.0
"""Entities, seconds: to count a large graph takes longer than to search it, so a search tells
numbers that are a little old."""

ONLINE_WITHIN = 30
"""Seconds that a search waits for an index that is still being filled."""

_PLACES = 6
"""Neo4j computes in float32: equal vectors have equal scores, but not the last bits of them."""

Scored = tuple[float, EntityUid]
"""The distance first, so that the smallest is the best and equal ones go by key."""


class Counts:
    """How many entities and vectors there are, by model and type; kept where they are many."""

    def __init__(self) -> None:
        self._clock = SystemClock()
        self._kept: dict[tuple[str, str | None], tuple[float, Row]] = {}

    def of(
        self, session: GraphSession, record: ModelRecord | None, *, model: str, kind: str | None
    ) -> Row:
        now = self._clock.monotonic()
        kept_at, counts = self._kept.get((model, kind), (0.0, None))
        if counts is None or now - kept_at > COUNTS_KEPT_FOR:
            (counts,) = session.all(
                cypher.COUNT_SEARCHABLE, of=property_of(record), model=model, entity_type=kind
            )
            if counts["entities"] >= COUNTS_KEPT_FROM:
                self._kept[model, kind] = now, counts
        return counts


def search(
    graph: Graph,
    vector: Vector,
    *,
    model: str,
    limit: int,
    entity_type: str | None,
    counts: Counts,
) -> SearchResult:
    check_limit(limit, most=MOST_HITS)

    def look(session: GraphSession) -> tuple[ModelRecord | None, Row]:
        record = find_model(session, model)
        return record, counts.of(session, record, model=model, kind=entity_type)

    record, counted = graph.read(look)
    problem = vector_problem(vector, dimensions=record.dimensions if record else vector.size)
    if problem:
        raise RequestError(f"The vector to search for {problem}.")
    if record is None:
        return SearchResult(entities=counted["entities"])
    # Of unit length, because float32 would lose very long and very short ones on the way.
    wide = vector.astype(np.float64)
    query = (wide / np.linalg.norm(wide)).tolist()
    asked = {"model": model, "dimensions": record.dimensions, "entity_type": entity_type}
    searchable = counted["vectors"]
    if searchable <= COMPARE_ALL:
        rows = graph.read(
            lambda session: session.all(
                cypher.SCAN_VECTORS, of=record.vector_property, query=query, **asked
            )
        )
        searchable = len(rows)
    else:
        rows = _nearest(graph, record, limit, query=query, **asked)
    best = sorted(_scored(rows))[:limit]
    return SearchResult(
        hits=_hits(graph, best, entity_type), searchable=searchable, entities=counted["entities"]
    )


def _nearest(graph: Graph, record: ModelRecord, limit: int, **asked: object) -> list[Row]:
    """As many as wanted, if the index has them; asked for more until the filters leave enough."""
    index = _online_index(graph, record)

    def ask(session: GraphSession, *, nearest: int) -> list[Row]:
        return session.all(
            cypher.NEAREST, of=record.vector_property, index=index, nearest=nearest, **asked
        )

    nearest = max(limit * OVERFETCH, 100)
    while True:
        found = graph.read(partial(ask, nearest=nearest))
        hits = [row for row in found if row["score"] is not None]
        if len(hits) >= limit or len(found) < nearest or nearest >= MOST_FETCHED:
            return hits
        nearest = min(nearest * GROWTH, MOST_FETCHED)


def _online_index(graph: Graph, record: ModelRecord) -> str:
    index = vector_index(graph, record)
    if index is None:
        raise SchemaMissing(
            f"There is no vector index on {graph.mapping.label}.{record.vector_property}:"
            " run `embed-pipeline init`."
        )
    if not index.is_online:
        graph.read(
            lambda session: session.all(cypher.AWAIT_INDEX, index=index.name, seconds=ONLINE_WITHIN)
        )
    return index.name


def _scored(rows: Sequence[Row]) -> Iterator[Scored]:
    """Neo4j's score is (1 + cosine) / 2."""
    for row in rows:
        yield -round(2 * row["score"] - 1, _PLACES), EntityUid(row["uid"])


def _hits(graph: Graph, best: Sequence[Scored], entity_type: str | None) -> tuple[Hit, ...]:
    """Read last, so only the best are; one that left since it was scored is left out."""
    found = entity_records.read(graph, [uid for _, uid in best])
    return tuple(
        Hit(entity=entity, score=-distance)
        for distance, uid in best
        if (entity := found.get(uid)) is not None
        and entity.is_valid
        and entity_type in (None, entity.entity_type)
    )
