"""Exact search: the whole of a model's vectors, a chunk at a time, with a running best list."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

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
from embed_pipeline.errors import RequestError
from embed_pipeline.stores.sqlite.graph import records as entity_records
from embed_pipeline.stores.sqlite.graph import rows as entity_rows
from embed_pipeline.stores.sqlite.graph import sql
from embed_pipeline.stores.sqlite.graph.backend import GraphFile
from embed_pipeline.stores.sqlite.graph.models import find_model

CHUNK_ROWS, CHUNK_BYTES = 20_000, 16 * 1024 * 1024
"""A chunk ends at either; in numpy it takes about four times its bytes."""

_PLACES = 9
"""Equal vectors may differ in the last bits of their scores, by where they lie in a chunk."""

Doubles = npt.NDArray[np.float64]
Scored = tuple[float, EntityUid]
"""The distance first, so that the smallest is the best and equal ones go by key."""


def search(
    graph: GraphFile, vector: Vector, *, model: str, limit: int, entity_type: str | None
) -> SearchResult:
    check_limit(limit, most=MOST_HITS)
    with graph.reading() as session:
        record = find_model(session, model)
        entities = session.all(sql.COUNT_VALID, entity_type=entity_type)[0][0]
    problem = vector_problem(vector, dimensions=record.dimensions if record else vector.size)
    if problem:
        raise RequestError(f"The vector to search for {problem}.")
    if record is None:
        return SearchResult(entities=entities)
    wide = vector.astype(np.float64)
    query = wide / np.linalg.norm(wide)
    best: list[Scored] = []
    searchable = 0
    for uids, matrix in _chunks(graph, record, entity_type):
        searchable += len(uids)
        best = heapq.nsmallest(limit, [*best, *_nearest(uids, matrix, query, limit)])
    return SearchResult(
        hits=_hits(graph, best, entity_type), searchable=searchable, entities=entities
    )


def _chunks(
    graph: GraphFile, record: ModelRecord, entity_type: str | None
) -> Iterator[tuple[list[EntityUid], Doubles]]:
    """In the order of the file; between two chunks other threads get their turn."""
    size = max(1, min(CHUNK_ROWS, CHUNK_BYTES // (4 * record.dimensions)))
    after = 0
    while True:
        with graph.reading() as session:
            rows = session.all(
                sql.SCAN_VECTORS,
                after=after,
                size=size,
                property=record.vector_property,
                model=record.model,
                dimensions=record.dimensions,
                entity_type=entity_type,
            )
        if rows:
            matrix = entity_rows.matrix_of(rows)
            yield [EntityUid(row["uid"]) for row in rows], matrix.astype(np.float64)
            after = rows[-1]["id"]
        if len(rows) < size:
            return


def _nearest(
    uids: Sequence[EntityUid], matrix: Doubles, query: Doubles, limit: int
) -> Iterator[Scored]:
    """The best of a chunk and all that equal the last of them: the key decides later."""
    distances = -np.round((matrix @ query) / _lengths(matrix), _PLACES)
    kept = min(limit, len(uids))
    bound = np.partition(distances, kept - 1)[kept - 1]
    for position in np.flatnonzero(distances <= bound).tolist():
        yield float(distances[position]), uids[position]


def _lengths(matrix: Doubles) -> Doubles:
    lengths: Doubles = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))
    # A zero vector that another program left is far from everything instead of not a number.
    return np.where(lengths > 0, lengths, 1.0)


def _hits(graph: GraphFile, best: Sequence[Scored], entity_type: str | None) -> tuple[Hit, ...]:
    """Read last, so only the best are; one that left since it was scored is left out."""
    found = entity_records.read(graph, [uid for _, uid in best])
    return tuple(
        Hit(entity=entity, score=-distance)
        for distance, uid in best
        if (entity := found.get(uid)) is not None
        and entity.is_valid
        and entity_type in (None, entity.entity_type)
    )
