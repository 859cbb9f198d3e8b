"""Entities themselves: created, changed, deleted and read, a batch per transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.embedding import Created, ModelRecord, check_limit, defect_of
from embed_pipeline.domain.entity import Entity, NewEntity, check_entities, merged
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.domain.partition import ERASED, Labels, labels_for
from embed_pipeline.stores.graph.labels import change_of, set_right
from embed_pipeline.stores.graph.models import GraphPart, find_model, named, property_of
from embed_pipeline.stores.graph.transaction import (
    Change,
    GraphTransaction,
    Known,
    Uids,
    in_batches,
)

NEW = Labels(marked=True)


class EntityVerbs(GraphPart):
    def create_entities(self, entities: Sequence[NewEntity], *, model: str) -> tuple[Created, ...]:
        return self._put(entities, partial(_create, mapping=self.mapping, model=model))

    def upsert_entities(self, entities: Sequence[NewEntity], *, model: str) -> tuple[Created, ...]:
        return self._put(entities, partial(_upsert, mapping=self.mapping, model=model))

    def _put(
        self, entities: Sequence[NewEntity], how: Callable[..., list[Created]]
    ) -> tuple[Created, ...]:
        check_entities(entities, mapping=self.mapping)
        parts = in_batches(entities, self._graph.entities_per_write)
        return tuple(one for part in parts for one in self._graph.write(partial(how, part=part)))

    def soft_delete(self, uids: Sequence[EntityUid]) -> tuple[EntityUid, ...]:
        if not uids:
            return ()
        asked = sorted(set(uids))
        return self._graph.write(partial(_soft_delete, uids=asked))

    def erase(self, uid: EntityUid, *, delete: bool = False) -> bool:
        return self._graph.write(partial(_erase, uid=uid, delete=delete))

    def get_entity(self, uid: EntityUid) -> Entity | None:
        return self.read_entities([uid]).get(uid)

    def find_by_name(self, name: str, *, limit: int = 10) -> tuple[Entity, ...]:
        check_limit(limit)
        return tuple(
            self._graph.read(
                lambda tx: tx.entities(tx.statements.FIND_BY_NAME, name=name, limit=limit)
            )
        )

    def read_entities(self, uids: Sequence[EntityUid]) -> Mapping[EntityUid, Entity]:
        if not uids:
            return {}
        asked = sorted(set(uids))
        found = self._graph.read(lambda tx: tx.read_entities(asked))
        return {entity.uid: entity for entity in found}


def _create(
    tx: GraphTransaction, *, part: Sequence[NewEntity], mapping: Collection, model: str
) -> list[Created]:
    """Those that are there already are not locked: many callers may name them at once."""
    record = find_model(tx, model)
    of = property_of(record)
    wanted: dict[EntityUid, Entity] = {}
    for new in part:
        wanted.setdefault(new.identity, merged(new, None, mapping=mapping))
    changes = [
        Change(entity=e, labels=labels_for(e, {}, (), NEW)) for _, e in sorted(wanted.items())
    ]
    there = {
        known.entity.uid: _kept(
            known.entity, embedded=defect_of(known.entity, known.facts[of], record) is None
        )
        for known in tx.create_missing(changes, of=of)
    }
    made: list[Created] = []
    for new in part:
        entity = wanted[new.identity]
        made.append(there.get(entity.uid) or Created(entity=entity))
        there.setdefault(entity.uid, _kept(entity, embedded=False))
    return made


def _kept(entity: Entity, *, embedded: bool) -> Created:
    return Created(entity=entity, existing=True, changed=False, embedded=embedded)


def _upsert(
    tx: GraphTransaction, *, part: Sequence[NewEntity], mapping: Collection, model: str
) -> list[Created]:
    models = tx.models()
    record = named(models, model)
    own = property_of(record)
    locked = {
        known.entity.uid: known
        for known in tx.lock_entities(
            sorted({new.identity for new in part}),
            of=sorted({own, *(m.vector_property for m in models)}),
            create=True,
        )
    }
    current = {uid: known.entity for uid, known in locked.items()}
    made: list[Created] = []
    for new in part:
        existing = current.get(new.identity)
        entity = merged(new, existing, mapping=mapping)
        current[entity.uid] = entity
        facts = locked[entity.uid].facts if entity.uid in locked else {}
        made.append(
            Created(
                entity=entity,
                existing=existing is not None,
                changed=entity != existing,
                embedded=defect_of(entity, facts.get(own), record) is None,
            )
        )
    changed = {one.entity.uid: current[one.entity.uid] for one in made if one.changed}
    tx.save([_saved(entity, locked.get(uid), models) for uid, entity in changed.items()])
    return made


def _saved(entity: Entity, before: Known | None, models: Sequence[ModelRecord]) -> Change:
    """Marked, unless its text came back to vectors that are still there."""
    if before is None:
        return Change(entity=entity, labels=labels_for(entity, {}, models, NEW))
    marked = replace(before.labels, marked=True)
    change = change_of(replace(before, entity=entity, labels=marked), models)
    return replace(change, before=before.entity, labels_before=before.labels)


def _soft_delete(tx: GraphTransaction, *, uids: Uids) -> tuple[EntityUid, ...]:
    """The vector stays: an entity that is revived with the same text needs no new one."""
    rows = tx.all(tx.statements.SOFT_DELETE, uids=uids)
    deleted = sorted(EntityUid(str(row["uid"])) for row in rows)
    set_right(tx, uids=deleted)
    return tuple(deleted)


def _erase(tx: GraphTransaction, *, uid: EntityUid, delete: bool) -> bool:
    """A vector that is on its way meets the label, or no entity, under its own lock."""
    vectors = tuple(model.vector_property for model in tx.models())
    locked = tx.lock_entities([uid], of=vectors, measure=False)
    tx.save(
        [
            Change(
                entity=known.entity,
                before=known.entity,
                labels=Labels(excluded=ERASED),
                labels_before=known.labels,
                dropped=vectors,
            )
            for known in locked
        ]
    )
    if locked and delete:
        tx.all(tx.statements.DELETE_ENTITY, uid=uid)
    return bool(locked)
