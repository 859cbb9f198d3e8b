"""Stored vectors: what they were made from, which can be used again, and how they land."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence

from embed_pipeline.domain.embedding import StoredVector, VectorWrite, WriteReport, check_writes
from embed_pipeline.domain.entity import TextValue
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.stores.sqlite.graph import rows as entity_rows
from embed_pipeline.stores.sqlite.graph import sql
from embed_pipeline.stores.sqlite.graph.backend import GraphFile, GraphSession
from embed_pipeline.stores.sqlite.graph.models import find_model, model_taking_vectors
from embed_pipeline.stores.sqlite.queue.rows import as_list


def versions(graph: GraphFile, uids: Sequence[EntityUid], *, model: str) -> Mapping[EntityUid, str]:
    if not uids:
        return {}
    with graph.reading() as session:
        rows = _usable(session, sql.EMBEDDED_VERSIONS, model, uids=as_list(uids))
    return {EntityUid(row["uid"]): row["version"] for row in rows}


def of_versions(
    graph: GraphFile, wanted: Collection[str], *, model: str
) -> Mapping[str, StoredVector]:
    if not wanted:
        return {}
    with graph.reading() as session:
        rows = _usable(session, sql.VECTORS_OF_VERSIONS, model, versions=as_list(wanted))
    return {row["version"]: entity_rows.stored_vector(row) for row in rows}


def write(graph: GraphFile, writes: Sequence[VectorWrite], *, model: str) -> WriteReport:
    """The transaction is the only writer, so what it compares cannot change before it lands."""
    if not writes:
        return WriteReport()
    with graph.transaction() as session:
        record = model_taking_vectors(session, model)
        check_writes(writes, record)
        current = _current_texts(session, writes)
        landing = [w for w in writes if current.get(w.uid) == w.texts]
        now = session.now_ms
        session.run_each(
            sql.WRITE_VECTOR, (entity_rows.written_values(w, record, now=now) for w in landing)
        )
        session.run_each(sql.CLEAR_MARKER, ({"uid": w.uid, "version": w.version} for w in landing))
    return WriteReport(
        written=_uids(landing),
        superseded=_uids(w for w in writes if current.get(w.uid, w.texts) != w.texts),
        gone=_uids(w for w in writes if w.uid not in current),
    )


def _current_texts(
    session: GraphSession, writes: Sequence[VectorWrite]
) -> dict[EntityUid, tuple[TextValue, ...]]:
    found = session.entities(sql.READ_ENTITIES, uids=as_list(_uids(writes)))
    return {entity.uid: entity.texts for entity in found if entity.is_valid}


def _uids(writes: Iterable[VectorWrite]) -> tuple[EntityUid, ...]:
    return tuple(dict.fromkeys(write.uid for write in writes))


def _usable(
    session: GraphSession, statement: str, model: str, **asked: object
) -> list[sqlite3.Row]:
    """Rows of vectors that are this model's and have its dimensions; none for an unknown one."""
    record = find_model(session, model)
    if record is None:
        return []
    return session.all(
        statement,
        property=record.vector_property,
        model=record.model,
        dimensions=record.dimensions,
        **asked,
    )
