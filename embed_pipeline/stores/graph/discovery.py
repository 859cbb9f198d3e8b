"""Discovery: which entities need a vector, found page by page and never by loading the graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from embed_pipeline.domain.coverage import Coverage
from embed_pipeline.domain.embedding import (
    Bookmark,
    Candidate,
    Discovery,
    Page,
    VectorDefect,
    check_limit,
    defect_of,
)
from embed_pipeline.domain.entity import Entity
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.stores.graph.models import GraphPart, find_model, property_in, property_of
from embed_pipeline.stores.graph.transaction import GraphTransaction, Statements, WithFacts

PAGE = 500
"""Rows of a page whose size the caller did not choose: texts can be long, so memory stays small."""

WINDOW, GROWTH = 2_000, 4
"""Keys that one read for missing vectors goes through at most, and how windows grow to that."""

START = EntityUid("")
"""Every key is a string that is not empty; nodes with another key are not entities."""

Classified = tuple[Entity, VectorDefect | None]


class DiscoveryVerbs(GraphPart):
    def entities_without_embeddings(
        self, limit: int = 10, *, model: str, after: Bookmark | None = None
    ) -> Discovery:
        check_limit(limit)
        marked: list[Entity] = []
        start = after.uid if after else START
        if after is None or after.marked:
            marked = self._graph.read(
                lambda tx: tx.entities(
                    tx.statements.MARKED_WITHOUT_VECTOR,
                    of=property_in(tx, model),
                    after=start,
                    size=limit,
                )
            )
            start = START
        others = self._unmarked_without_vector(limit - len(marked), model=model, after=start)
        # What a writer unmarked between the two reads would otherwise be there twice.
        seen = {entity.uid for entity in marked}
        last = (marked + others)[-1:]
        is_last = len(marked) + len(others) < limit
        return Discovery(
            entities=(*marked, *(entity for entity in others if entity.uid not in seen)),
            bookmark=None if is_last else Bookmark(uid=last[0].uid, marked=not others),
        )

    def _unmarked_without_vector(self, limit: int, *, model: str, after: EntityUid) -> list[Entity]:
        """Window by window: however large the graph, each transaction is short.

        The first window is as long as the limit, which is enough where nothing is embedded yet.
        """

        def read(tx: GraphTransaction) -> tuple[list[Entity], EntityUid | None]:
            return tx.unmarked_without_vector(
                of=property_in(tx, model),
                after=last or START,
                size=limit - len(found),
                window=window,
            )

        found: list[Entity] = []
        last: EntityUid | None = after
        window = min(limit, WINDOW)
        while last is not None and len(found) < limit:
            page, last = self._graph.read(read)
            found.extend(page)
            window = min(window * GROWTH, WINDOW)
        return found

    def changed_entities(
        self, *, model: str, limit: int, after: EntityUid | None = None
    ) -> tuple[Entity, ...]:
        """Marked ones whose vector is up to date are passed over, page after page."""
        check_limit(limit)

        def read(tx: GraphTransaction) -> list[WithFacts]:
            return tx.with_facts(
                tx.statements.MARKED_WITH_FACTS,
                of=property_in(tx, model),
                after=last or START,
                size=PAGE,
            )

        found: list[Entity] = []
        last: EntityUid | None = after or START
        while last is not None and len(found) < limit:
            page = self._graph.read(read)
            found.extend(e for e, facts in page if facts and facts.version != e.version)
            last = page[-1][0].uid if len(page) == PAGE else None
        return tuple(found[:limit])

    def mark_changed(self) -> int:
        return self._graph.mark_changed()

    def walk(
        self, *, model: str, defects: Collection[VectorDefect], after: EntityUid | None, size: int
    ) -> Page:
        check_limit(size)
        page = self._next(model, after=after or START, size=size)
        return Page(
            candidates=tuple(
                Candidate(entity=e, defect=defect)
                for e, defect in page
                if defect is not None and defect in defects
            ),
            examined=len(page),
            next_after=page[-1][0].uid if len(page) == size else None,
        )

    def coverage(self, *, model: str) -> Coverage:
        """Page by page: no transaction lasts, and none holds the whole graph in memory."""
        counts: Counter[VectorDefect | None] = Counter()
        last: EntityUid | None = START
        while last is not None:
            page = self._next(model, after=last, size=PAGE)
            counts.update(defect for _, defect in page)
            last = page[-1][0].uid if len(page) == PAGE else None
        return Coverage(
            entities=counts.total(),
            embedded=counts[None],
            missing=counts[VectorDefect.MISSING],
            stale=counts[VectorDefect.STALE],
            wrong_model=counts[VectorDefect.WRONG_MODEL],
            wrong_dimension=counts[VectorDefect.WRONG_DIMENSION],
        )

    def classify(
        self, uids: Sequence[EntityUid], *, model: str
    ) -> Mapping[EntityUid, VectorDefect | None]:
        if not uids:
            return {}
        asked = sorted(set(uids))
        found = self._classified(model, lambda known: known.READ_WITH_FACTS, uids=asked)
        return {entity.uid: defect for entity, defect in found if entity.is_valid}

    def _next(self, model: str, *, after: EntityUid, size: int) -> list[Classified]:
        """The next valid entities by key."""
        return self._classified(model, lambda known: known.NEXT_WITH_FACTS, after=after, size=size)

    def _classified(
        self, model: str, choose: Callable[[Statements], str], **asked: object
    ) -> list[Classified]:
        """Entities and the defects of their vectors, by the texts as they are now.

        No stored hash of the text is trusted: another program may have changed the text alone.
        """

        def read(tx: GraphTransaction) -> list[Classified]:
            record = find_model(tx, model)
            found = tx.with_facts(choose(tx.statements), of=property_of(record), **asked)
            return [(entity, defect_of(entity, facts, record)) for entity, facts in found]

        return self._graph.read(read)

    # -- where a named walk stopped ---------------------------------------------------------

    def cursor(self, name: str) -> EntityUid | None:
        rows = self._graph.read(lambda tx: tx.all(tx.statements.READ_CURSOR, name=name))
        return rows[0]["uid"] if rows else None

    def save_cursor(self, name: str, uid: EntityUid | None) -> None:
        self._graph.write(lambda tx: tx.all(tx.statements.SAVE_CURSOR, name=name, uid=uid))
