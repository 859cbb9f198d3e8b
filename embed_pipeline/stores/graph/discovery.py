"""Discovery: which entities need a vector, found page by page and never by loading the graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from embed_pipeline.domain.collection import KeyType
from embed_pipeline.domain.embedding import (
    FIRST_PROPERTY,
    Bookmark,
    Discovery,
    ModelRecord,
    VectorDefect,
    check_limit,
    defect_of,
)
from embed_pipeline.domain.entity import Entity
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.domain.partition import PartitionCounts
from embed_pipeline.stores.graph.labels import LabelVerbs, is_right
from embed_pipeline.stores.graph.models import find_model, property_of
from embed_pipeline.stores.graph.transaction import GraphTransaction, Known

PAGE = 500
"""Rows of a page whose size the caller did not choose: texts can be long, so memory stays small."""

WINDOW, GROWTH = 2_000, 4
"""Keys that one read for missing vectors goes through at most, and how windows grow to that."""

FEW = 20_000
"""Missing ones that are sorted by key to find the next of them."""

START = EntityUid("")
"""Every key is a string that is not empty; nodes with another key are not entities."""

LACKING = frozenset(VectorDefect) - {VectorDefect.STALE}


class DiscoveryVerbs(LabelVerbs):
    def entities_without_embeddings(
        self, limit: int = 10, *, model: str, after: Bookmark | None = None
    ) -> Discovery:
        check_limit(limit)
        record = self._graph.read(lambda tx: find_model(tx, model))
        marked: list[Entity] = []
        start = after.uid if after else START
        if after is None or after.marked:
            marked = self.missing(record, marked=True, after=start, limit=limit)
            start = START
        others = self.missing(record, marked=False, after=start, limit=limit - len(marked))
        # What a writer unmarked between the two reads would otherwise be there twice.
        seen = {entity.uid for entity in marked}
        last = (marked + others)[-1:]
        is_last = len(marked) + len(others) < limit
        return Discovery(
            entities=(*marked, *(entity for entity in others if entity.uid not in seen)),
            bookmark=None if is_last else Bookmark(uid=last[0].uid, marked=not others),
        )

    def missing(
        self, record: ModelRecord | None, *, marked: bool, after: EntityUid, limit: int
    ) -> list[Entity]:
        """One of the two parts of `entities_without_embeddings`."""
        if marked:
            return self._marked(record, LACKING, after=after, limit=limit)
        return self._unmarked(record, after=after, limit=limit)

    def changed_entities(
        self, *, model: str, limit: int, after: EntityUid | None = None
    ) -> tuple[Entity, ...]:
        check_limit(limit)
        record = self._graph.read(lambda tx: find_model(tx, model))
        return tuple(self._marked(record, {VectorDefect.STALE}, after=after or START, limit=limit))

    def _marked(
        self, record: ModelRecord | None, wanted: Set[VectorDefect], *, after: EntityUid, limit: int
    ) -> list[Entity]:
        """Marked entities with such a vector; the labels of others are set right on the way."""

        def read(tx: GraphTransaction) -> tuple[list[Known], EntityUid | None]:
            page = tx.known(
                tx.statements.MARKED_WITH_FACTS, of=property_of(record), after=last, size=size
            )
            return page, page[-1].entity.uid if len(page) == size else None

        found: list[Entity] = []
        last: EntityUid | None = after
        size = min(limit, PAGE)
        while last is not None and len(found) < limit:
            page, last = self._graph.read(read)
            found.extend(self._lacking(page, record, wanted))
            size = min(size * GROWTH, PAGE)
        return found[:limit]

    def _unmarked(
        self, record: ModelRecord | None, *, after: EntityUid, limit: int
    ) -> list[Entity]:
        """Few are found by their missing labels, many by the key: a scan would sort them all.

        Window by window: however large the graph, each transaction is short. The first window is
        as long as the limit, which is enough where nothing is embedded yet.
        """

        def read(tx: GraphTransaction) -> tuple[list[Known], EntityUid | None]:
            of, size = property_of(record), limit - len(found)
            (row,) = tx.all(tx.statements.COUNT_LABELS, of=of)
            missing = PartitionCounts(**dict(row)).missing
            if not missing:
                return [], None
            if missing > FEW:
                return tx.missing_in_window(of=of, after=last or START, size=size, window=window)
            page = tx.known(tx.statements.MISSING, of=of, after=last, size=size, missing=missing)
            return page, page[-1].entity.uid if len(page) == size else None

        found: list[Entity] = []
        last: EntityUid | None = after
        window = min(limit, WINDOW)
        while last is not None and len(found) < limit:
            page, last = self._graph.read(read)
            found.extend(self._lacking(page, record, LACKING))
            window = min(window * GROWTH, WINDOW)
        return found[:limit]

    def _lacking(
        self, page: Sequence[Known], record: ModelRecord | None, wanted: Set[VectorDefect]
    ) -> Iterator[Entity]:
        """Those with a text whose vector has such a defect; every wrong label is set right.

        Otherwise an entity that needs nothing would be met again and again.
        """
        if record is not None:
            self._set_right([known.entity.uid for known in page if not is_right(known, record)])
        for known in page:
            entity, facts = known.entity, known.facts[property_of(record)]
            if entity.is_valid and entity.text and defect_of(entity, facts, record) in wanted:
                yield entity

    def next_entities(self, *, limit: int, after: EntityUid | None = None) -> tuple[Entity, ...]:
        check_limit(limit)
        page = self._graph.read(
            lambda tx: tx.known(
                tx.statements.NEXT_WITH_LABELS,
                of=FIRST_PROPERTY,
                after=after or START,
                size=limit,
            )
        )
        return tuple(known.entity for known in page)

    def mark_changed(self) -> int:
        return self._graph.mark_changed()

    def classify(
        self, uids: Sequence[EntityUid], *, model: str
    ) -> Mapping[EntityUid, VectorDefect | None]:
        if not uids:
            return {}

        def read(tx: GraphTransaction) -> Mapping[EntityUid, VectorDefect | None]:
            record = find_model(tx, model)
            of, asked = property_of(record), sorted(set(uids))
            found = tx.known(tx.statements.READ_WITH_FACTS, of=of, uids=asked)
            return {
                one.entity.uid: defect_of(one.entity, one.facts[of], record)
                for one in found
                if one.entity.is_valid
            }

        return self._graph.read(read)

    def is_before(self, first: EntityUid, second: EntityUid) -> bool:
        if first and second and self.mapping.key_type is KeyType.INTEGER:
            return int(first) < int(second)
        return first < second

    # -- where a named walk stopped ---------------------------------------------------------

    def cursor(self, name: str) -> EntityUid | None:
        rows = self._graph.read(lambda tx: tx.all(tx.statements.READ_CURSOR, name=name))
        return rows[0]["uid"] if rows else None

    def save_cursor(self, name: str, uid: EntityUid | None) -> None:
        self._graph.write(lambda tx: tx.all(tx.statements.SAVE_CURSOR, name=name, uid=uid))
