"""The audit: every entity's labels beside its properties, page by page, and what it recorded."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from embed_pipeline.domain.embedding import VectorDefect, check_limit
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.domain.partition import (
    AuditCounts,
    AuditPage,
    AuditPass,
    AuditRecord,
    PartitionCounts,
)
from embed_pipeline.stores.encoding import from_ms, plain
from embed_pipeline.stores.graph.discovery import START, DiscoveryVerbs


class AuditVerbs(DiscoveryVerbs):
    def counts(self, *, model: str) -> PartitionCounts:
        found, after = AuditCounts(), None
        while True:
            page = self.audit_page(model=model, after=after, size=500, repair=False)
            found, after = found + page, page.next_after
            if after is None:
                break
        return PartitionCounts(
            entities=found.examined,
            embedded=found.embedded + found.stale,
            nothing_to_embed=found.nothing_to_embed,
            excluded=found.excluded,
        )

    def audit_page(
        self,
        *,
        model: str,
        after: EntityUid | None,
        size: int,
        repair: bool = True,
        sample: int = 0,
    ) -> AuditPage:
        check_limit(size)
        page = self._next(model, after=after or START, size=size)
        found = Counter(defect for entity, defect in page if entity.text)
        return AuditPage(
            embedded=found[None],
            missing=found[VectorDefect.MISSING],
            stale=found[VectorDefect.STALE],
            wrong_model=found[VectorDefect.WRONG_MODEL],
            wrong_dimension=found[VectorDefect.WRONG_DIMENSION],
            nothing_to_embed=len(page) - found.total(),
            next_after=page[-1][0].uid if len(page) == size else None,
        )

    def exchange_markers(self, queued: Mapping[EntityUid, str]) -> int:
        return 0

    def mark_nothing_to_embed(
        self, uids: Sequence[EntityUid], *, model: str
    ) -> tuple[EntityUid, ...]:
        found = self._graph.read(lambda tx: tx.read_entities(sorted(set(uids)))) if uids else []
        return tuple(entity.uid for entity in found if entity.is_valid and not entity.text)

    # -- what was recorded --------------------------------------------------------------------

    def audit_record(self, *, model: str) -> AuditRecord | None:
        stored = self.cursor(_cursor_of(model))
        if stored is None:
            return None
        passes = json.loads(stored)
        return AuditRecord(
            model=model, last=_read_pass(passes["last"]), current=_read_pass(passes["current"])
        )

    def save_audit(self, record: AuditRecord) -> None:
        passes = {"last": _written(record.last), "current": _written(record.current)}
        self.save_cursor(_cursor_of(record.model), EntityUid(json.dumps(passes)))


def _cursor_of(model: str) -> str:
    return f"audit of {model}"


def _written(one: AuditPass | None) -> dict[str, Any] | None:
    return {name: plain(value) for name, value in asdict(one).items()} if one else None


def _read_pass(stored: dict[str, Any] | None) -> AuditPass | None:
    if stored is None:
        return None
    return AuditPass(
        started_at=from_ms(stored["started_at"]),
        counts=AuditCounts(**stored["counts"]),
        after=stored["after"],
        ended_at=_time(stored["ended_at"]),
    )


def _time(stored: int | None) -> datetime | None:
    return None if stored is None else from_ms(stored)
