"""Entities themselves: created, changed, deleted and read, a batch per transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from embed_pipeline.model.embedding import Created, VectorFacts, check_limit, flaw_of
from embed_pipeline.model.entity import Entity, NewEntity, check_entities, merged
from embed_pipeline.model.job import EntityUid
from embed_pipeline.stores.neo4j import entity_cypher as cypher
from embed_pipeline.stores.neo4j import entity_rows, model_registry
from embed_pipeline.stores.neo4j.entity_graph import Graph, GraphSession, in_batches

BATCH = 1000
"""Entities of one transaction; a larger call is several, each of them whole."""

READ_BATCH = 250
"""Entities that the server holds in memory at once to answer in one row."""


class _Batch:
    """The entities of one transaction: as they were found, and as they are after each step."""

    def __init__(self, session: GraphSession, uids: Sequence[EntityUid], model: str) -> None:
        self._session = session
        self._models = model_registry.read_models(session)
        self._record = model_registry.named(self._models, model)
        self._facts: dict[EntityUid, Mapping[str, VectorFacts | None]] = {}
        self._found: dict[EntityUid, Entity] = {}
        self._unsaved: dict[EntityUid, Entity] = {}
        own = model_registry.property_of(self._record)
        properties = sorted({own, *model_registry.properties_taking(self._models)})
        # Sorted, so that two callers lock what they share in the same order.
        rows = session.all(
            cypher.LOCK_OR_CREATE,
            uids=sorted(set(uids)),
            vectors=model_registry.names_of(properties),
        )
        for row in rows:
            if row["is_new"]:
                continue
            entity = entity_rows.entity_of(row["entity"], session.mapping)
            facts = map(entity_rows.facts_of, row["facts"])
            self._found[entity.uid] = entity
            self._facts[entity.uid] = dict(zip(properties, facts, strict=True))

    def create(self, new: NewEntity) -> Created:
        existing = self._current(new.identity)
        return self._kept(existing) if existing else self._changed(new, None)

    def upsert(self, new: NewEntity) -> Created:
        return self._changed(new, self._current(new.identity))

    def save(self) -> None:
        rows = [
            {
                "uid": entity.uid,
                "properties": entity_rows.changed_properties(
                    entity, self._found.get(entity.uid), self._session.mapping
                ),
            }
            for entity in self._unsaved.values()
        ]
        if rows:
            self._session.all(cypher.SAVE_ENTITIES, rows=rows)
        # A text may have come back to one whose vectors are still there.
        settled = [e.uid for e in self._unsaved.values() if self._is_settled(e)]
        if settled:
            self._session.all(cypher.CLEAR_MARKERS, uids=settled)

    def _current(self, uid: EntityUid) -> Entity | None:
        return self._unsaved.get(uid) or self._found.get(uid)

    def _changed(self, new: NewEntity, existing: Entity | None) -> Created:
        entity = merged(new, existing, mapping=self._session.mapping)
        if entity == existing:
            return self._kept(existing)
        self._unsaved[entity.uid] = entity
        is_embedded = self._is_embedded(entity)
        return Created(entity=entity, existing=existing is not None, embedded=is_embedded)

    def _kept(self, entity: Entity) -> Created:
        is_embedded = self._is_embedded(entity)
        return Created(entity=entity, existing=True, changed=False, embedded=is_embedded)

    def _is_embedded(self, entity: Entity) -> bool:
        facts = self._facts.get(entity.uid, {}).get(model_registry.property_of(self._record))
        return flaw_of(entity, facts, self._record) is None

    def _is_settled(self, entity: Entity) -> bool:
        return model_registry.is_settled(entity, self._facts.get(entity.uid, {}), self._models)


def create(graph: Graph, entities: Sequence[NewEntity], *, model: str) -> tuple[Created, ...]:
    return _put(graph, entities, model=model, how=_Batch.create)


def upsert(graph: Graph, entities: Sequence[NewEntity], *, model: str) -> tuple[Created, ...]:
    return _put(graph, entities, model=model, how=_Batch.upsert)


def _put(
    graph: Graph,
    entities: Sequence[NewEntity],
    *,
    model: str,
    how: Callable[[_Batch, NewEntity], Created],
) -> tuple[Created, ...]:
    check_entities(entities, mapping=graph.mapping)

    def put(session: GraphSession, *, part: Sequence[NewEntity]) -> tuple[Created, ...]:
        batch = _Batch(session, [new.identity for new in part], model)
        results = tuple(how(batch, new) for new in part)
        batch.save()
        return results

    results: list[Created] = []
    for part in in_batches(entities, BATCH):
        results.extend(graph.write(partial(put, part=part)))
    return tuple(results)


def soft_delete(graph: Graph, uids: Sequence[EntityUid]) -> tuple[EntityUid, ...]:
    if not uids:
        return ()
    asked = sorted(set(uids))
    rows = graph.write(lambda session: session.all(cypher.SOFT_DELETE, uids=asked))
    return tuple(sorted(EntityUid(row["uid"]) for row in rows))


def read(graph: Graph, uids: Sequence[EntityUid]) -> Mapping[EntityUid, Entity]:
    if not uids:
        return {}
    asked = sorted(set(uids))

    def look_up(session: GraphSession) -> list[Any]:
        parts = in_batches(asked, READ_BATCH)
        return [
            values
            for part in parts
            for values in session.collected(cypher.READ_ENTITIES, uids=part)
        ]

    found = [entity_rows.entity_of(values, graph.mapping) for values in graph.read(look_up)]
    return {entity.uid: entity for entity in found}


def find_by_name(graph: Graph, name: str, *, limit: int) -> tuple[Entity, ...]:
    check_limit(limit)
    return tuple(
        graph.read(lambda session: session.entities(cypher.FIND_BY_NAME, name=name, limit=limit))
    )
