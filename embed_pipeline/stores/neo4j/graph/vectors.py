"""Stored vectors: what they were made from, which can be used again, and how they land."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial

from embed_pipeline.domain.embedding import (
    StoredVector,
    VectorFacts,
    VectorWrite,
    WriteReport,
    check_writes,
)
from embed_pipeline.domain.entity import Entity
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.errors import StoreOverloaded
from embed_pipeline.stores.neo4j.driver.database import Row
from embed_pipeline.stores.neo4j.graph import models as model_registry
from embed_pipeline.stores.neo4j.graph import rows as entity_rows
from embed_pipeline.stores.neo4j.graph.backend import Graph, GraphSession, in_batches
from embed_pipeline.stores.neo4j.graph.cypher import vectors as cypher

BATCH = 250
"""Vectors of one transaction: larger ones hold locks and memory for longer and gain nothing."""

Facts = dict[str, VectorFacts | None]


def versions(graph: Graph, uids: Sequence[EntityUid], *, model: str) -> Mapping[EntityUid, str]:
    if not uids:
        return {}
    asked = [{"uids": sorted(set(uids))}]
    rows = graph.read(
        partial(_usable, statement=cypher.EMBEDDED_VERSIONS, model=model, asked=asked)
    )
    return {EntityUid(row["uid"]): row["version"] for row in rows}


def of_versions(graph: Graph, wanted: Collection[str], *, model: str) -> Mapping[str, StoredVector]:
    if not wanted:
        return {}
    # In parts: all at once would be gathered in the server's memory.
    asked = [{"versions": part} for part in in_batches(sorted(set(wanted)), BATCH)]
    rows = graph.read(
        partial(_usable, statement=cypher.VECTORS_OF_VERSIONS, model=model, asked=asked)
    )
    return {row["version"]: entity_rows.stored_vector(row) for row in rows}


def write(graph: Graph, writes: Sequence[VectorWrite], *, model: str) -> WriteReport:
    if not writes:
        return WriteReport()
    packed = graph.database.speaks_vectors
    unchecked: Sequence[VectorWrite] = writes
    current: dict[EntityUid, Entity] = {}
    # Sorted, so that two callers lock what they share in the same order.
    for part in in_batches(sorted(writes, key=lambda write: write.uid), BATCH):
        landing = partial(_land, unchecked=unchecked, model=model, packed=packed)
        current.update(_landed(graph, landing, part))
        unchecked = ()
    return WriteReport(
        written=_uids(w for w in writes if w.uid in current and current[w.uid].texts == w.texts),
        superseded=_uids(w for w in writes if w.uid in current and current[w.uid].texts != w.texts),
        gone=_uids(w for w in writes if w.uid not in current),
    )


def _landed(
    graph: Graph, landing: Callable[..., dict[EntityUid, Entity]], writes: Sequence[VectorWrite]
) -> dict[EntityUid, Entity]:
    """What is too much for the server's memory goes in halves: texts may be megabytes long."""
    try:
        return graph.write(partial(landing, writes=writes))
    except StoreOverloaded:
        if len(writes) == 1:
            raise
    middle = len(writes) // 2
    halves = (writes[:middle], writes[middle:])
    return {uid: e for half in halves for uid, e in _landed(graph, landing, half).items()}


def _land(
    session: GraphSession,
    *,
    writes: Sequence[VectorWrite],
    unchecked: Sequence[VectorWrite],
    model: str,
    packed: bool,
) -> dict[EntityUid, Entity]:
    """The valid entities under our lock; those that still have the embedded texts got theirs.

    Before the first of a call lands, all of them are checked.
    """
    models = model_registry.read_models(session)
    record = model_registry.taking_vectors(models, model)
    check_writes(unchecked, record)
    others = [m for m in models if m.takes_vectors and m.model != record.model]
    locked = _lock(session, writes, sorted(m.vector_property for m in others))
    rows = _Unshown()
    for write in writes:
        if write.uid not in locked or locked[write.uid][0].texts != write.texts:
            continue
        # This model has it now; the others may not.
        entity, facts = locked[write.uid]
        is_settled = not others or model_registry.is_settled(entity, facts, others)
        rows.append(entity_rows.written_row(write, is_settled=is_settled, packed=packed))
    if rows:
        session.all(
            cypher.WRITE_VECTORS,
            of=record.vector_property,
            rows=rows,
            vector_property=record.vector_property,
            model=record.model,
        )
        # A transaction of the driver's and its results hold each other and what was sent, until
        # the garbage collector comes: many pages of vectors later.
        rows.clear()
    return {uid: entity for uid, (entity, _) in locked.items()}


def _lock(
    session: GraphSession, writes: Sequence[VectorWrite], properties: Sequence[str]
) -> dict[EntityUid, tuple[Entity, Facts]]:
    """The valid ones; nobody can change them until this transaction ends."""
    found = session.collected(
        cypher.LOCK_ENTITIES,
        uids=_uids(writes),
        vectors=model_registry.names_of(properties),
    )
    locked: dict[EntityUid, tuple[Entity, Facts]] = {}
    for values, all_facts in found:
        entity = entity_rows.entity_of(values, session.mapping)
        if entity.is_valid:
            facts = map(entity_rows.facts_of, all_facts)
            locked[entity.uid] = entity, dict(zip(properties, facts, strict=True))
    return locked


class _Unshown(list[Row]):
    """The driver words every statement with its parameters for a debug log that nobody reads.

    Of 250 vectors that takes longer than to send them, and vectors belong in no log.
    """

    def __repr__(self) -> str:
        return f"[{len(self)} rows]"


def _uids(writes: Iterable[VectorWrite]) -> tuple[EntityUid, ...]:
    return tuple(dict.fromkeys(write.uid for write in writes))


def _usable(
    session: GraphSession, *, statement: str, model: str, asked: Iterable[Mapping[str, object]]
) -> list[Row]:
    """Rows of vectors that are this model's and have its dimensions; none for an unknown one."""
    record = model_registry.find_model(session, model)
    if record is None:
        return []
    known = {"model": record.model, "dimensions": record.dimensions}
    return [
        row
        for part in asked
        for row in session.all(statement, of=record.vector_property, **known, **part)
    ]
