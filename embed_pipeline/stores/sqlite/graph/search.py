"""Exact search: the whole of a model's vectors, a chunk at a time, with a running best list."""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from embed_pipeline.domain.job import EntityUid
from embed_pipeline.stores.graph.transaction import Scored, Search
from embed_pipeline.stores.sqlite.graph import rows as entity_rows

CHUNK_ROWS, CHUNK_BYTES = 20_000, 16 * 1024 * 1024
"""A chunk ends at either; in numpy it takes about four times its bytes."""

_PLACES = 9
"""Equal vectors may differ in the last bits of their scores, by where they lie in a chunk."""

Doubles = npt.NDArray[np.float64]

Scan = Callable[[int, int], list[sqlite3.Row]]
"""Rows behind an id, at most so many, in the order of the file."""


def nearest(search: Search, scan: Scan) -> list[Scored]:
    """The best; other threads may read and write between two chunks."""
    size = max(1, min(CHUNK_ROWS, CHUNK_BYTES // (4 * search.record.dimensions)))
    best: list[Scored] = []
    after = 0
    while rows := scan(after, size):
        uids = [EntityUid(str(row["uid"])) for row in rows]
        matrix = entity_rows.matrix_of(rows).astype(np.float64)
        chunk = _best_of(uids, matrix, search.query, search.limit)
        best = heapq.nsmallest(search.limit, [*best, *chunk])
        after = rows[-1]["id"]
        if len(rows) < size:
            break
    return best


def _best_of(
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
