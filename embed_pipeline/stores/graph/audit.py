"""The audit: every entity's labels beside its properties, page by page, and what it recorded."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from embed_pipeline.domain.embedding import ModelRecord, check_limit, defect_of, vector_problem
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.domain.partition import (
    AuditCounts,
    AuditPage,
    AuditPass,
    AuditRecord,
    Labels,
)
from embed_pipeline.errors import StoreOverloaded
from embed_pipeline.stores.encoding import from_ms, plain, time_or_none
from embed_pipeline.stores.graph.discovery import START, DiscoveryVerbs
from embed_pipeline.stores.graph.labels import change_of, is_right
from embed_pipeline.stores.graph.models import find_model, property_of
from embed_pipeline.stores.graph.transaction import (
    Change,
    Examined,
    GraphTransaction,
    Known,
    Uids,
    in_batches,
)

Findings = dict[EntityUid, str]
"""By entity, the count of `AuditCounts` that it belongs to."""


class AuditVerbs(DiscoveryVerbs):
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

        def read(tx: GraphTransaction) -> tuple[ModelRecord | None, Examined]:
            record, start = find_model(tx, model), after or START
            return record, tx.examine(of=property_of(record), model=model, after=start, size=size)

        try:
            record, page = self._graph.read(read)
        except StoreOverloaded:
            if size == 1:
                raise
            # Texts may be megabytes long.
            return self.audit_page(
                model=model, after=after, size=size // 2, repair=repair, sample=sample
            )
        found = dict.fromkeys(page.right, "embedded")
        found |= {known.entity.uid: _finding(known, record) for known in page.others}
        if record is not None and sample:
            found |= self._check_sample(found, record, size=sample, repair=repair)
        counts = AuditCounts(**Counter(found.values()))
        if repair:
            wrong = {k.entity.uid for k in page.others if not is_right(k, record)}
            # Disowned as well: a reader that does not measure it would take it for a good one.
            wrong |= {uid for uid, finding in found.items() if finding == "wrong_dimension"}
            counts += _counted_changes(self._set_right(sorted(wrong)))
        if page.last is None:
            counts += self._graph.end_audit(of=property_of(record), repair=repair)
        return AuditPage(**asdict(counts), next_after=page.last)

    def _check_sample(
        self, found: Findings, record: ModelRecord, *, size: int, repair: bool
    ) -> Findings:
        """What is wrong with the numbers of some of the vectors; those are disowned."""
        have = [uid for uid, finding in found.items() if finding in ("embedded", "stale")]
        asked = sorted(random.sample(have, min(size, len(have))))
        wrong = self._graph.read(lambda tx: _problems(tx, asked, record)) if asked else {}
        if wrong and repair:
            self._graph.write(partial(_disown, uids=sorted(wrong), record=record))
        return wrong

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


def _finding(known: Known, record: ModelRecord | None) -> str:
    """The count that the entity belongs to."""
    entity = known.entity
    if not entity.is_valid:
        return "excluded"
    if not entity.text:
        return "nothing_to_embed"
    defect = defect_of(entity, known.facts[property_of(record)], record)
    return "embedded" if defect is None else defect.name.lower()


def _counted_changes(changes: Sequence[Change]) -> AuditCounts:
    return AuditCounts(
        repaired=sum(_partition(one.labels) != _partition(one.labels_before) for one in changes),
        marked=sum(one.labels.marked and not one.labels_before.marked for one in changes),
    )


def _partition(labels: Labels) -> Labels:
    return replace(labels, marked=False, queued=False)


def _problems(tx: GraphTransaction, uids: Uids, record: ModelRecord) -> Findings:
    found: Findings = {}
    for part in in_batches(uids, tx.read_batch):
        for row in tx.all(tx.statements.READ_VECTORS, of=record.vector_property, uids=part):
            vector = tx.vector_of(row).vector
            if vector_problem(vector, dimensions=record.dimensions):
                is_sized = vector.shape == (record.dimensions,)
                found[EntityUid(str(row["uid"]))] = "invalid" if is_sized else "wrong_dimension"
    return found


def _disown(tx: GraphTransaction, *, uids: Uids, record: ModelRecord) -> None:
    """Read again under lock: the vector may have been written meanwhile."""
    models, of = tx.models(), record.vector_property
    locked = tx.lock_entities(uids, of=[m.vector_property for m in models], measure=False)
    wrong = _problems(tx, uids, record)
    tx.save(
        [
            replace(change_of(replace(one, facts={**one.facts, of: None}), models), disowned=(of,))
            for one in locked
            if one.entity.uid in wrong
        ]
    )


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
        ended_at=time_or_none(stored["ended_at"]),
    )
