"""Stored vectors: what they were made from, which can be used again, and how they are written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from functools import partial
from typing import Any

from embed_pipeline.domain.embedding import (
    ModelRecord,
    StoredVector,
    VectorWrite,
    WriteReport,
    check_writes,
    vector_problem,
)
from embed_pipeline.domain.entity import Entity
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.errors import StoreOverloaded
from embed_pipeline.stores.graph.labels import LabelVerbs
from embed_pipeline.stores.graph.models import find_model, has_vectors_of, taking_vectors
from embed_pipeline.stores.graph.transaction import GraphTransaction, Row, in_batches

Current = dict[EntityUid, Entity]
"""The valid entities of a write, as they were under its lock."""


class VectorVerbs(LabelVerbs):
    def embedded_versions(
        self, uids: Sequence[EntityUid], *, model: str
    ) -> Mapping[EntityUid, str]:
        def read(tx: GraphTransaction) -> list[Row]:
            known = tx.statements.EMBEDDED_VERSIONS
            record = find_model(tx, model)
            return tx.all(known, uids=list(uids), **_of(record)) if record else []

        rows = self._graph.read(read) if uids else []
        # A vector without its label counts as missing, and would be asked for again and again.
        self._set_right([EntityUid(str(row["uid"])) for row in rows if not row["labelled"]])
        return {EntityUid(str(row["uid"])): row["version"] for row in rows}

    def vectors_of_versions(
        self, versions: Sequence[str] | Set[str], *, model: str
    ) -> Mapping[str, StoredVector]:
        def read(tx: GraphTransaction) -> dict[str, StoredVector]:
            known = tx.statements.VECTORS_OF_VERSIONS
            record = find_model(tx, model)
            if record is None:
                return {}
            return {
                row["version"]: stored
                for part in in_batches(sorted(set(versions)), tx.read_batch)
                for row in tx.all(known, versions=part, **_of(record))
                if not vector_problem(
                    (stored := tx.vector_of(row)).vector, dimensions=record.dimensions
                )
            }

        return self._graph.read(read) if versions else {}

    def write_vectors(self, writes: Sequence[VectorWrite], *, model: str) -> WriteReport:
        unchecked: Sequence[VectorWrite] = writes
        current: Current = {}
        ordered = sorted(writes, key=lambda write: write.uid)
        for part in in_batches(ordered, self._graph.vectors_per_write):
            current |= self._write_part(part, unchecked=unchecked, model=model)
            unchecked = ()
        there = [write for write in writes if write.uid in current]
        return WriteReport(
            written=_uids(w for w in there if current[w.uid].text == w.text),
            superseded=_uids(w for w in there if current[w.uid].text != w.text),
            gone=_uids(w for w in writes if w.uid not in current),
        )

    def _write_part(
        self, writes: Sequence[VectorWrite], *, unchecked: Sequence[VectorWrite], model: str
    ) -> Current:
        """What is too much for the server's memory is halved: texts may be megabytes long."""
        write = partial(_write, writes=writes, unchecked=unchecked, model=model)
        try:
            return self._graph.write(write)
        except StoreOverloaded:
            if len(writes) == 1:
                raise
        middle = len(writes) // 2
        first = self._write_part(writes[:middle], unchecked=unchecked, model=model)
        return first | self._write_part(writes[middle:], unchecked=(), model=model)

    def probe(self) -> None:
        self._graph.write(lambda tx: tx.all(tx.statements.PROBE))


def _write(
    tx: GraphTransaction,
    *,
    writes: Sequence[VectorWrite],
    unchecked: Sequence[VectorWrite],
    model: str,
) -> Current:
    """Write the vectors whose entity still has the embedded text, under its lock.

    `unchecked` are all vectors of a call, before the first of them is written.
    """
    models = tx.models()
    record = taking_vectors(models, model)
    check_writes(unchecked, record)
    others = [m for m in models if m.takes_vectors and m is not record]
    locked = {
        known.entity.uid: known
        for known in tx.lock_entities(_uids(writes), of=sorted(m.vector_property for m in others))
        if known.entity.is_valid
    }
    landing = [w for w in writes if w.uid in locked and locked[w.uid].entity.text == w.text]
    # This model has it now; the others may not.
    unmark = {w.uid for w in landing if has_vectors_of(locked[w.uid], others)}
    if landing:
        tx.write_vectors(landing, record=record, unmark=unmark)
    return {uid: known.entity for uid, known in locked.items()}


def _uids(writes: Iterable[VectorWrite]) -> tuple[EntityUid, ...]:
    return tuple(dict.fromkeys(write.uid for write in writes))


def _of(record: ModelRecord) -> dict[str, Any]:
    return {"of": record.vector_property, "model": record.model, "dimensions": record.dimensions}
