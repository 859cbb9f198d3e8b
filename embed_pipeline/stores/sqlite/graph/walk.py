"""Discovery: which entities need a vector, found by pages and never by loading the graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

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
from embed_pipeline.stores.sqlite.graph import rows as entity_rows
from embed_pipeline.stores.sqlite.graph import sql
from embed_pipeline.stores.sqlite.graph.backend import GraphFile, GraphSession
from embed_pipeline.stores.sqlite.graph.models import find_model, property_of
from embed_pipeline.stores.sqlite.queue.rows import as_list

PAGE = 500
"""Rows of a page whose size nobody chose: texts can be long, so memory stays small."""

START = EntityUid("")


def without_vector(
    graph: GraphFile, limit: int, *, model: str, after: Bookmark | None
) -> Discovery:
    check_limit(limit)
    with graph.reading() as session:
        vector_property = property_of(find_model(session, model))
        marked: list[Entity] = []
        if after is None or after.marked:
            marked = session.entities(
                sql.MARKED_WITHOUT_VECTOR,
                property=vector_property,
                after=after.uid if after else START,
                size=limit,
            )
        others = session.entities(
            sql.UNMARKED_WITHOUT_VECTOR,
            property=vector_property,
            after=after.uid if after and not after.marked else START,
            size=limit - len(marked),
        )
    found = (*marked, *others)
    is_last = len(found) < limit
    return Discovery(
        entities=found,
        bookmark=None if is_last else Bookmark(uid=found[-1].uid, marked=not others),
    )


def changed(
    graph: GraphFile, *, model: str, limit: int, after: EntityUid | None
) -> tuple[Entity, ...]:
    """Marked ones whose vector is up to date are passed over, page after page."""
    check_limit(limit)
    found: list[Entity] = []
    last: EntityUid | None = after or START
    while last is not None and len(found) < limit:
        with graph.reading() as session:
            record = find_model(session, model)
            page = _read(session, sql.MARKED_WITH_FACTS, record, after=last, size=PAGE)
        found.extend(e for e, facts in page if facts and facts.version != e.version)
        last = page[-1][0].uid if len(page) == PAGE else None
    return tuple(found[:limit])


def walk(
    graph: GraphFile,
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
    graph: GraphFile, uids: Sequence[EntityUid], *, model: str
) -> dict[EntityUid, VectorDefect | None]:
    if not uids:
        return {}
    with graph.reading() as session:
        record = find_model(session, model)
        found = _read(session, sql.READ_WITH_FACTS, record, uids=as_list(uids))
    return {e.uid: defect_of(e, facts, record) for e, facts in found if e.is_valid}


def coverage(graph: GraphFile, *, model: str) -> Coverage:
    """Page by page, so that writers and other threads get their turn in between."""
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
    graph: GraphFile, *, model: str, after: EntityUid, size: int
) -> list[tuple[Entity, VectorDefect | None]]:
    """The next valid entities and their flaws, by the texts as they are now.

    No stored hash of the text is trusted: another program may have changed the text alone.
    """
    with graph.reading() as session:
        record = find_model(session, model)
        page = _read(session, sql.NEXT_WITH_FACTS, record, after=after, size=size)
    return [(entity, defect_of(entity, facts, record)) for entity, facts in page]


def _read(
    session: GraphSession,
    statement: str,
    record: ModelRecord | None,
    **asked: object,
) -> list[tuple[Entity, VectorFacts | None]]:
    rows = session.all(statement, property=property_of(record), **asked)
    return [
        (entity_rows.entity_of(row, session.mapping), entity_rows.facts_of(row)) for row in rows
    ]
