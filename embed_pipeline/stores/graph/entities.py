"""Entities themselves: created, changed, deleted and read, a batch per transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from embed_pipeline.domain.embedding import Created, check_limit, defect_of
from embed_pipeline.domain.entity import Entity, EntityMapping, NewEntity, check_entities, merged
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.stores.graph.models import (
    GraphPart,
    find_model,
    has_vectors_of,
    named,
    property_of,
)
from embed_pipeline.stores.graph.transaction import GraphTransaction, in_batches


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
        rows = self._graph.write(lambda tx: tx.all(tx.statements.SOFT_DELETE, uids=asked))
        return tuple(sorted(EntityUid(row["uid"]) for row in rows))

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
    tx: GraphTransaction, *, part: Sequence[NewEntity], mapping: EntityMapping, model: str
) -> list[Created]:
    """Those that are there already are not locked: many callers may name them at once."""
    record = find_model(tx, model)
    wanted: dict[EntityUid, Entity] = {}
    for new in part:
        wanted.setdefault(new.identity, merged(new, None, mapping=mapping))
    found = tx.create_missing([wanted[uid] for uid in sorted(wanted)], of=property_of(record))
    there = {
        entity.uid: _kept(entity, embedded=defect_of(entity, facts, record) is None)
        for entity, facts in found
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
    tx: GraphTransaction, *, part: Sequence[NewEntity], mapping: EntityMapping, model: str
) -> list[Created]:
    models = tx.models()
    record = named(models, model)
    taking = [m for m in models if m.takes_vectors]
    own = property_of(record)
    locked = tx.lock_entities(
        sorted({new.identity for new in part}),
        of=sorted({own, *(m.vector_property for m in taking)}),
        create=True,
    )
    before = {entity.uid: entity for entity, _ in locked}
    facts = {entity.uid: facts for entity, facts in locked}
    current = dict(before)
    made: list[Created] = []
    for new in part:
        existing = current.get(new.identity)
        entity = merged(new, existing, mapping=mapping)
        current[entity.uid] = entity
        made.append(
            Created(
                entity=entity,
                existing=existing is not None,
                changed=entity != existing,
                embedded=defect_of(entity, facts.get(entity.uid, {}).get(own), record) is None,
            )
        )
    changed = {one.entity.uid: current[one.entity.uid] for one in made if one.changed}
    if changed:
        tx.save_entities([(entity, before.get(uid)) for uid, entity in changed.items()])
    # A text may have come back to one whose vectors are still there. Without any model that takes
    # vectors "every model has it" would hold for nothing.
    complete = [u for u, e in changed.items() if has_vectors_of(e, facts.get(u, {}), taking)]
    if taking and complete:
        tx.all(tx.statements.CLEAR_MARKERS, uids=complete)
    return made
