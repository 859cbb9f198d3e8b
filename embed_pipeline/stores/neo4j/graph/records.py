"""Entities themselves: created, changed, deleted and read, a batch per transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from embed_pipeline.domain.embedding import Created, VectorFacts, check_limit, defect_of
from embed_pipeline.domain.entity import Entity, EntityMapping, NewEntity, check_entities, merged
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.stores.neo4j.driver.database import Row
from embed_pipeline.stores.neo4j.graph import models as model_registry
from embed_pipeline.stores.neo4j.graph import rows as entity_rows
from embed_pipeline.stores.neo4j.graph.backend import Graph, GraphSession, in_batches
from embed_pipeline.stores.neo4j.graph.cypher import entities as cypher

BATCH = 1000
"""Entities of one transaction; a larger call is several, each of them whole."""

READ_BATCH = 250
"""Entities that the server holds in memory at once to answer in one row."""


def create(graph: Graph, entities: Sequence[NewEntity], *, model: str) -> tuple[Created, ...]:
    return _put(graph, entities, partial(_create, model=model))


def upsert(graph: Graph, entities: Sequence[NewEntity], *, model: str) -> tuple[Created, ...]:
    return _put(graph, entities, partial(_upsert, model=model))


def _put(
    graph: Graph, entities: Sequence[NewEntity], how: Callable[..., list[Created]]
) -> tuple[Created, ...]:
    check_entities(entities, mapping=graph.mapping)
    parts = in_batches(entities, BATCH)
    return tuple(one for part in parts for one in graph.write(partial(how, part=part)))


def _create(session: GraphSession, *, part: Sequence[NewEntity], model: str) -> list[Created]:
    record = model_registry.find_model(session, model)
    wanted: dict[EntityUid, Entity] = {}
    for new in part:
        wanted.setdefault(new.identity, merged(new, None, mapping=session.mapping))
    found = session.collected(
        cypher.CREATE_MISSING,
        of=model_registry.property_of(record),
        # Sorted, so that two callers who create the same wait for each other in the same order.
        rows=[_row(wanted[uid], None, session.mapping) for uid in sorted(wanted)],
    )
    there: dict[EntityUid, Created] = {}
    for values, facts in found:
        entity = entity_rows.entity_of(values, session.mapping)
        is_embedded = defect_of(entity, entity_rows.facts_of(facts), record) is None
        there[entity.uid] = _kept(entity, is_embedded=is_embedded)
    made: list[Created] = []
    for new in part:
        entity = wanted[new.identity]
        made.append(there.get(entity.uid) or Created(entity=entity))
        there.setdefault(entity.uid, _kept(entity, is_embedded=False))
    return made


def _upsert(session: GraphSession, *, part: Sequence[NewEntity], model: str) -> list[Created]:
    batch = _Batch(session, [new.identity for new in part], model)
    results = [batch.upsert(new) for new in part]
    batch.save()
    return results


def _row(entity: Entity, existing: Entity | None, mapping: EntityMapping) -> Row:
    properties = entity_rows.changed_properties(entity, existing, mapping)
    return {"uid": entity.uid, "properties": properties}


def _kept(entity: Entity, *, is_embedded: bool) -> Created:
    return Created(entity=entity, existing=True, changed=False, embedded=is_embedded)


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
        found = session.collected(
            cypher.LOCK_OR_CREATE,
            uids=sorted(set(uids)),
            vectors=model_registry.names_of(properties),
        )
        for values, all_facts in found:
            entity = entity_rows.entity_of(values, session.mapping)
            facts = map(entity_rows.facts_of, all_facts)
            self._found[entity.uid] = entity
            self._facts[entity.uid] = dict(zip(properties, facts, strict=True))

    def upsert(self, new: NewEntity) -> Created:
        existing = self._unsaved.get(new.identity) or self._found.get(new.identity)
        entity = merged(new, existing, mapping=self._session.mapping)
        is_embedded = self._is_embedded(entity)
        if entity == existing:
            return _kept(existing, is_embedded=is_embedded)
        self._unsaved[entity.uid] = entity
        return Created(entity=entity, existing=existing is not None, embedded=is_embedded)

    def save(self) -> None:
        if self._unsaved:
            mapping, found = self._session.mapping, self._found
            rows = [_row(e, found.get(e.uid), mapping) for e in self._unsaved.values()]
            self._session.all(cypher.SAVE_ENTITIES, rows=rows)
        # A text may have come back to one whose vectors are still there.
        settled = [e.uid for e in self._unsaved.values() if self._is_settled(e)]
        if settled:
            self._session.all(cypher.CLEAR_MARKERS, uids=settled)

    def _is_embedded(self, entity: Entity) -> bool:
        facts = self._facts.get(entity.uid, {}).get(model_registry.property_of(self._record))
        return defect_of(entity, facts, self._record) is None

    def _is_settled(self, entity: Entity) -> bool:
        return model_registry.is_settled(entity, self._facts.get(entity.uid, {}), self._models)


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
