"""Discovery: which entities need a vector, found by pages and never by loading the graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from functools import partial

from embed_pipeline.domain.embedding import (
    Bookmark,
    Candidate,
    Coverage,
    Discovery,
    ModelRecord,
    Page,
    VectorDefect,
    VectorFacts,
    check_limit,
    defect_of,
)
from embed_pipeline.domain.entity import Entity
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.stores.neo4j.driver.database import Row
from embed_pipeline.stores.neo4j.graph import rows as entity_rows
from embed_pipeline.stores.neo4j.graph.backend import Graph, GraphSession
from embed_pipeline.stores.neo4j.graph.cypher import entities as cypher
from embed_pipeline.stores.neo4j.graph.models import find_model, property_of

PAGE = 500
"""Rows of a page whose size nobody chose: texts can be long, so memory stays small."""

WINDOW, GROWTH = 2_000, 4
"""Keys that one look for missing vectors goes through at most, and how windows grow to that."""

START = EntityUid("")
"""Every key is a string that is not empty; other nodes cannot be named, so they are not walked."""


def without_vector(graph: Graph, limit: int, *, model: str, after: Bookmark | None) -> Discovery:
    check_limit(limit)
    marked: list[Entity] = []
    start = START
    if after is None or after.marked:
        marked = _marked_without_vector(graph, limit, model=model, after=after)
    else:
        start = after.uid
    others = _unmarked_without_vector(graph, limit - len(marked), model=model, after=start)
    # What a writer unmarked between the two looks would otherwise be there twice.
    seen = {entity.uid for entity in marked}
    last = (marked + others)[-1:]
    is_last = len(marked) + len(others) < limit
    return Discovery(
        entities=(*marked, *(entity for entity in others if entity.uid not in seen)),
        bookmark=None if is_last else Bookmark(uid=last[0].uid, marked=not others),
    )


def _marked_without_vector(
    graph: Graph, limit: int, *, model: str, after: Bookmark | None
) -> list[Entity]:
    def look(session: GraphSession) -> list[Entity]:
        return session.entities(
            cypher.MARKED_WITHOUT_VECTOR,
            of=property_of(find_model(session, model)),
            after=after.uid if after else START,
            size=limit,
        )

    return graph.read(look)


def _unmarked_without_vector(
    graph: Graph, limit: int, *, model: str, after: EntityUid
) -> list[Entity]:
    """Window by window: however large the graph, no transaction lasts.

    The first is as long as what is wanted, which is enough where nothing is embedded yet.
    """

    def look(session: GraphSession, *, after: EntityUid, size: int, window: int) -> Row:
        vector = property_of(find_model(session, model))
        (row,) = session.all(
            cypher.UNMARKED_WITHOUT_VECTOR, of=vector, after=after, size=size, window=window
        )
        return row

    found: list[Entity] = []
    last: EntityUid | None = after
    window = min(limit, WINDOW)
    while last is not None and len(found) < limit:
        row = graph.read(partial(look, after=last, size=limit - len(found), window=window))
        found.extend(entity_rows.entity_of(values, graph.mapping) for values in row["found"])
        last = row["last"] if row["examined"] == window else None
        window = min(window * GROWTH, WINDOW)
    return found


def changed(graph: Graph, *, model: str, limit: int, after: EntityUid | None) -> tuple[Entity, ...]:
    """Marked ones whose vector is up to date are passed over, page after page."""
    check_limit(limit)
    found: list[Entity] = []
    last: EntityUid | None = after or START
    while last is not None and len(found) < limit:
        _, page = _read(graph, cypher.MARKED_WITH_FACTS, model=model, after=last, size=PAGE)
        found.extend(e for e, facts in page if facts and facts.version != e.version)
        last = page[-1][0].uid if len(page) == PAGE else None
    return tuple(found[:limit])


def walk(
    graph: Graph,
    *,
    model: str,
    defects: Collection[VectorDefect],
    after: EntityUid | None,
    size: int,
) -> Page:
    check_limit(size)
    judged = _judge(graph, model=model, after=after or START, size=size)
    candidates = (
        Candidate(entity=e, defect=defect) for e, defect in judged if defect and defect in defects
    )
    return Page(
        candidates=tuple(candidates),
        examined=len(judged),
        next_after=judged[-1][0].uid if len(judged) == size else None,
    )


def classify(
    graph: Graph, uids: Sequence[EntityUid], *, model: str
) -> dict[EntityUid, VectorDefect | None]:
    if not uids:
        return {}
    record, found = _read(graph, cypher.READ_WITH_FACTS, model=model, uids=list(uids))
    return {entity.uid: defect_of(entity, facts, record) for entity, facts in found}


def coverage(graph: Graph, *, model: str) -> Coverage:
    """Page by page: no transaction lasts, and none holds the whole graph in memory."""
    counts: Counter[VectorDefect | None] = Counter()
    last: EntityUid | None = START
    while last is not None:
        judged = _judge(graph, model=model, after=last, size=PAGE)
        counts.update(defect for _, defect in judged)
        last = judged[-1][0].uid if len(judged) == PAGE else None
    return Coverage(
        entities=counts.total(),
        embedded=counts[None],
        missing=counts[VectorDefect.MISSING],
        stale=counts[VectorDefect.STALE],
        wrong_model=counts[VectorDefect.WRONG_MODEL],
        wrong_dimension=counts[VectorDefect.WRONG_DIMENSION],
    )


def _judge(
    graph: Graph, *, model: str, after: EntityUid, size: int
) -> list[tuple[Entity, VectorDefect | None]]:
    """The next valid entities and their flaws, by the texts as they are now.

    No stored hash of the text is trusted: another program may have changed the text alone.
    """
    record, page = _read(graph, cypher.NEXT_WITH_FACTS, model=model, after=after, size=size)
    return [(entity, defect_of(entity, facts, record)) for entity, facts in page]


def _read(
    graph: Graph, statement: str, *, model: str, **asked: object
) -> tuple[ModelRecord | None, list[tuple[Entity, VectorFacts | None]]]:
    def look(session: GraphSession) -> tuple[ModelRecord | None, list[Row]]:
        record = find_model(session, model)
        return record, session.all(statement, of=property_of(record), **asked)

    record, rows = graph.read(look)
    page = [
        (entity_rows.entity_of(row["entity"], graph.mapping), entity_rows.facts_of(row["facts"]))
        for row in rows
    ]
    return record, page
