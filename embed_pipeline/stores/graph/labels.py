"""Labels: how many entities have which, and each set right under lock by one rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from embed_pipeline.domain.embedding import ModelRecord, VectorDefect, defect_of
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.domain.partition import Labelled, PartitionCounts, labels_for
from embed_pipeline.stores.graph.models import GraphPart, find_model, property_of
from embed_pipeline.stores.graph.transaction import (
    Change,
    GraphTransaction,
    Known,
    Uids,
    in_batches,
)


class LabelVerbs(GraphPart):
    def counts(self, *, model: str) -> PartitionCounts:
        def read(tx: GraphTransaction) -> PartitionCounts:
            record = find_model(tx, model)
            (row,) = tx.all(tx.statements.COUNT_LABELS, of=property_of(record))
            found = PartitionCounts(**dict(row))
            return found if record else replace(found, embedded=0)

        return self._graph.read(read)

    def counts_by_collection(self, *, model: str) -> Mapping[str, PartitionCounts]:
        return {self.mapping.name: self.counts(model=model)}

    def exchange_markers(self, queued: Mapping[EntityUid, str]) -> int:
        parts = in_batches(sorted(queued), self._graph.entities_per_write)
        return sum(self._graph.write(partial(_exchange, queued=queued, uids=p)) for p in parts)

    def relabel(self, uids: Sequence[EntityUid]) -> tuple[Labelled, ...]:
        return tuple(
            Labelled(entity=one.entity, labels=one.labels) for one in self._set_right(uids)
        )

    def _set_right(self, uids: Sequence[EntityUid]) -> list[Change]:
        """The labels of these entities, as their properties say under lock."""
        parts = in_batches(sorted(set(uids)), self._graph.entities_per_write)
        return [one for p in parts for one in self._graph.write(partial(set_right, uids=p))]


def set_right(tx: GraphTransaction, *, uids: Uids) -> list[Change]:
    """Lock the entities, save what their labels should be, and return each with both."""
    models = tx.models()
    locked = tx.lock_entities(uids, of=[m.vector_property for m in models], measure=False)
    seen = [change_of(known, models) for known in locked]
    tx.save([one for one in seen if one.labels != one.labels_before or one.dropped or one.disowned])
    return seen


def is_right(known: Known, record: ModelRecord | None) -> bool:
    """Whether the labels are what the properties say, as far as one model can tell, or none."""
    models = [record] if record else []
    return labels_for(known.entity, known.facts, models, known.labels) == known.labels


def change_of(known: Known, models: Sequence[ModelRecord]) -> Change:
    """What the entity's properties say its labels are.

    A vector of an emptied text goes. One whose dimensions are known to be wrong is disowned:
    otherwise a reader that does not measure it would take it for a good one again.
    """
    entity, facts = known.entity, known.facts
    labels = labels_for(entity, facts, models, known.labels)
    ours = [m for m in models if (f := facts.get(m.vector_property)) and f.model == m.model]
    return Change(
        entity=entity,
        before=entity,
        labels=labels,
        labels_before=known.labels,
        dropped=tuple(m.vector_property for m in ours) if labels.nothing_to_embed else (),
        disowned=tuple(
            m.vector_property
            for m in ours
            if defect_of(entity, facts[m.vector_property], m) is VectorDefect.WRONG_DIMENSION
        ),
    )


def _exchange(tx: GraphTransaction, *, queued: Mapping[EntityUid, str], uids: Uids) -> int:
    marked = [EntityUid(str(row["uid"])) for row in tx.all(tx.statements.MARKED_AMONG, uids=uids)]
    changes = [
        Change(
            entity=one.entity,
            before=one.entity,
            labels=replace(one.labels, marked=False, queued=True),
            labels_before=one.labels,
        )
        for one in tx.lock_entities(marked, of=(), measure=False)
        if one.labels.marked and one.entity.version == queued[one.entity.uid]
    ]
    tx.save(changes)
    return len(changes)
