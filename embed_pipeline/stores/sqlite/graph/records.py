"""Entities themselves: created, changed, deleted and read, a batch per transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from embed_pipeline.domain.embedding import (
    Created,
    ModelRecord,
    VectorFacts,
    check_limit,
    defect_of,
)
from embed_pipeline.domain.entity import Entity, NewEntity, check_entities, merged
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.stores.sqlite.graph import rows as entity_rows
from embed_pipeline.stores.sqlite.graph import sql
from embed_pipeline.stores.sqlite.graph.backend import GraphFile, GraphSession
from embed_pipeline.stores.sqlite.graph.models import find_model, property_of
from embed_pipeline.stores.sqlite.queue.rows import as_list


class _Batch:
    """The entities of one call: as they were found, and as they are after each step."""

    def __init__(self, session: GraphSession, uids: Sequence[EntityUid], model: str) -> None:
        self._session = session
        self._record: ModelRecord | None = find_model(session, model)
        self._facts: dict[EntityUid, VectorFacts | None] = {}
        self._current: dict[EntityUid, Entity] = {}
        self._unsaved: dict[EntityUid, Entity] = {}
        found = session.all(
            sql.READ_WITH_FACTS, uids=as_list(sorted(set(uids))), property=property_of(self._record)
        )
        for row in found:
            entity = entity_rows.entity_of(row, session.mapping)
            self._current[entity.uid] = entity
            self._facts[entity.uid] = entity_rows.facts_of(row)

    def create(self, new: NewEntity) -> Created:
        existing = self._current.get(new.identity)
        return self._kept(existing) if existing else self._changed(new, None)

    def upsert(self, new: NewEntity) -> Created:
        return self._changed(new, self._current.get(new.identity))

    def save(self) -> None:
        session = self._session
        session.run_each(
            sql.SAVE_ENTITY,
            (
                entity_rows.saved_values(entity, session.mapping, now=session.now_ms)
                for entity in self._unsaved.values()
            ),
        )
        # A text may have come back to one whose vectors are still there.
        session.run_each(
            sql.CLEAR_MARKER,
            (
                {"uid": entity.uid, "version": entity.version}
                for entity in self._unsaved.values()
                if self._is_embedded(entity)
            ),
        )

    def _changed(self, new: NewEntity, existing: Entity | None) -> Created:
        entity = merged(new, existing, mapping=self._session.mapping)
        if entity == existing:
            return self._kept(existing)
        self._current[entity.uid] = self._unsaved[entity.uid] = entity
        is_embedded = self._is_embedded(entity)
        return Created(entity=entity, existing=existing is not None, embedded=is_embedded)

    def _kept(self, entity: Entity) -> Created:
        is_embedded = self._is_embedded(entity)
        return Created(entity=entity, existing=True, changed=False, embedded=is_embedded)

    def _is_embedded(self, entity: Entity) -> bool:
        return defect_of(entity, self._facts.get(entity.uid), self._record) is None


def create(graph: GraphFile, entities: Sequence[NewEntity], *, model: str) -> tuple[Created, ...]:
    return _put(graph, entities, model=model, how=_Batch.create)


def upsert(graph: GraphFile, entities: Sequence[NewEntity], *, model: str) -> tuple[Created, ...]:
    return _put(graph, entities, model=model, how=_Batch.upsert)


def _put(
    graph: GraphFile,
    entities: Sequence[NewEntity],
    *,
    model: str,
    how: Callable[[_Batch, NewEntity], Created],
) -> tuple[Created, ...]:
    check_entities(entities, mapping=graph.mapping)
    if not entities:
        return ()
    with graph.transaction() as session:
        batch = _Batch(session, [new.identity for new in entities], model)
        results = tuple(how(batch, new) for new in entities)
        batch.save()
    return results


def soft_delete(graph: GraphFile, uids: Sequence[EntityUid]) -> tuple[EntityUid, ...]:
    if not uids:
        return ()
    with graph.transaction() as session:
        rows = session.all(sql.SOFT_DELETE, uids=as_list(uids), now=session.now_ms)
    return tuple(sorted(EntityUid(row["uid"]) for row in rows))


def read(graph: GraphFile, uids: Sequence[EntityUid]) -> Mapping[EntityUid, Entity]:
    if not uids:
        return {}
    with graph.reading() as session:
        found = session.entities(sql.READ_ENTITIES, uids=as_list(sorted(set(uids))))
    return {entity.uid: entity for entity in found}


def find_by_name(graph: GraphFile, name: str, *, limit: int) -> tuple[Entity, ...]:
    check_limit(limit)
    with graph.reading() as session:
        return tuple(session.entities(sql.FIND_BY_NAME, name=name, limit=limit))
