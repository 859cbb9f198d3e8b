"""What the entity-store contracts are told in: a graph, its entities, vectors and strangers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np

from embed_pipeline.domain.embedding import (
    ModelRecord,
    ModelState,
    Vector,
    VectorWrite,
    WriteReport,
)
from embed_pipeline.domain.entity import Entity, NewEntity
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.domain.partition import AuditCounts, Coverage, Labels
from embed_pipeline.domain.recipe import TextValue
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline_tests.clocks import FakeClock

DIMENSIONS = 4
MODEL = "mock/mock@4"
OTHER_MODEL = "mock/other@4"


class GraphBackend(Protocol):
    """One empty graph with the default mapping, and what another program may do to it.

    Another program knows nothing of markers, hashes and models: it changes what it names.
    """

    clock: FakeClock

    def open_store(self) -> EntityStore:
        """A new handle on the same graph, as another process would have it."""

    def insert(self, uid: EntityUid, *, name: str, observations: TextValue) -> None:
        """An entity without a marker, as older graphs are full of."""

    def set_text(self, uid: EntityUid, name: str, value: TextValue) -> None: ...

    def set_end(self, uid: EntityUid, value: object) -> None:
        """Whatever that program takes for the end of an entity's validity."""

    def remove(self, uid: EntityUid) -> None:
        """Delete the entity for good."""

    def drop_vector(self, uid: EntityUid) -> None: ...

    def relabel_vector(self, uid: EntityUid, model: str) -> None: ...

    def replace_vector(self, uid: EntityUid, vector: Vector) -> None: ...

    def add_model(self, record: ModelRecord) -> None:
        """Register a further model, which no run does by itself."""

    def set_state(self, model: str, state: ModelState) -> None: ...

    def is_marked(self, uid: EntityUid) -> bool: ...

    def has_vector(self, uid: EntityUid, *, model: str | None = None) -> bool: ...

    def labels_of(self, uid: EntityUid) -> Labels:
        """As far as the first model's vectors are concerned."""

    def set_label(self, uid: EntityUid, label: str, is_set: bool) -> None: ...


def uid(number: int | str) -> EntityUid:
    """Keys that sort as their numbers do."""
    return EntityUid(f"e{number:05}" if isinstance(number, int) else number)


def uids(numbers: Iterable[int]) -> list[EntityUid]:
    return [uid(number) for number in numbers]


def new(
    number: int | str, *observations: str, name: str | None = None, entity_type: str = "thing"
) -> NewEntity:
    return NewEntity(
        uid=uid(number),
        name=name or f"entity {number}",
        entity_type=entity_type,
        properties={"observations": observations or (f"fact {number}",)},
    )


def add(store: EntityStore, *numbers: int) -> tuple[Entity, ...]:
    created = store.create_entities([new(number) for number in numbers], model=MODEL)
    return tuple(one.entity for one in created)


def register(store: EntityStore) -> ModelRecord:
    record = store.register_first_model(MODEL, dimensions=DIMENSIONS)
    assert record is not None
    return record


def vector(*numbers: float) -> Vector:
    return np.array(numbers or (1, 2, 3, 4), dtype=np.float32)


def write(entity: Entity, numbers: Vector | None = None) -> VectorWrite:
    """The vector of the entity as the caller has read it."""
    return VectorWrite(entity=entity, vector=vector() if numbers is None else numbers)


def embed(store: EntityStore, *entities: Entity, model: str = MODEL) -> WriteReport:
    register(store)
    return store.write_vectors([write(entity) for entity in entities], model=model)


def add_embedded(store: EntityStore, *numbers: int) -> tuple[Entity, ...]:
    entities = add(store, *numbers)
    assert embed(store, *entities).written == tuple(entity.uid for entity in entities)
    return entities


def stored(store: EntityStore, key: EntityUid) -> Entity:
    entity = store.get_entity(key)
    assert entity is not None
    return entity


def keys(entities: Iterable[Entity]) -> list[EntityUid]:
    return [entity.uid for entity in entities]


def coverage_of(store: EntityStore, *, model: str = MODEL) -> Coverage:
    """Counted entity by entity, with the numbers of every vector; nothing is repaired."""
    found, after = AuditCounts(), EntityUid("")
    while True:
        page = store.audit_page(model=model, after=after, size=500, repair=False, sample=500)
        found += page
        if page.next_after is None:
            break
        after = page.next_after
    return Coverage(
        entities=found.examined - found.excluded,
        embedded=found.embedded,
        missing=found.missing,
        stale=found.stale,
        wrong_model=found.wrong_model,
        wrong_dimension=found.wrong_dimension,
        nothing_to_embed=found.nothing_to_embed,
    )
