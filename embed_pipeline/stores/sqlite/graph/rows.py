"""Between the graph's rows and values; only this module knows how values are stored.

A string is stored as text, a list of strings as JSON in a BLOB: so a string that looks like a
list stays a string, and a person reads both.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.embedding import (
    ModelRecord,
    StoredVector,
    Vector,
    VectorFacts,
    VectorWrite,
    embedded_label,
)
from embed_pipeline.domain.entity import Entity
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.domain.partition import ERASED, Labels
from embed_pipeline.domain.recipe import TextValue, embedding_text
from embed_pipeline.stores.encoding import INVALID_TIME, read_moment
from embed_pipeline.stores.graph.transaction import Change
from embed_pipeline.stores.sqlite.graph.mapping import saved_columns

_FLOAT32 = np.dtype("<f4")


def entity_of(row: sqlite3.Row, mapping: Collection) -> Entity:
    """By position: why excluded, uid, name, type, valid-to, then the mapping's texts."""
    excluded, uid, name, entity_type, valid_to, *texts = row[: 5 + len(mapping.text)]
    return Entity(
        uid=EntityUid(str(uid)),
        collection=mapping.name,
        name=_plain(name),
        entity_type=mapping.fixed_type or _plain(entity_type),
        texts=tuple(_text_of(text) for text in texts),
        valid_to=None if valid_to is None else read_moment(valid_to) or INVALID_TIME,
        erased=excluded == ERASED,
        html=mapping.html_positions,
    )


def has_text(*texts: object) -> bool:
    """Whether these columns hold anything to embed."""
    return bool(embedding_text([_text_of(text) for text in texts]))


def facts_of(row: sqlite3.Row) -> VectorFacts | None:
    if row["version"] is None:
        return None
    return VectorFacts(model=row["model"], version=row["version"], dimensions=row["dimensions"])


def labels_of(row: sqlite3.Row, *, of: str) -> Labels:
    return Labels(
        embedded=frozenset([embedded_label(of)] if row["embedded"] else ()),
        nothing_to_embed=bool(row["nothing_to_embed"]),
        excluded=row["excluded"],
        marked=bool(row["marked"]),
        queued=bool(row["queued"]),
    )


def label_values(change: Change, *, of: str) -> dict[str, object]:
    labels = change.labels
    return {
        "uid": change.entity.uid,
        "embedded": embedded_label(of) in labels.embedded,
        "nothing_to_embed": labels.nothing_to_embed,
        "excluded": labels.excluded,
        "marked": labels.marked,
        "queued": labels.queued,
    }


def saved_values(change: Change, mapping: Collection, *, now: int) -> tuple[object, ...]:
    """The parameters of a save, in the order of the saved columns."""
    entity, labels = change.entity, change.labels
    # The texts come last: they hold a missing type as missing, not as an empty string.
    values: dict[str, TextValue] = {
        mapping.key: entity.uid,
        mapping.name_property: entity.name,
        mapping.type_property: entity.entity_type or None,
        **dict(zip(mapping.text_properties, entity.texts, strict=True)),
    }
    columns = (_stored(values[column]) for column in saved_columns(mapping))
    return (now, labels.marked, labels.nothing_to_embed, *columns)


def written_values(write: VectorWrite, record: ModelRecord, *, now: int) -> dict[str, object]:
    return {
        "uid": write.uid,
        "property": record.vector_property,
        "model": record.model,
        "version": write.version,
        "now": now,
        "truncated": int(write.truncated),
        "vector": np.ascontiguousarray(write.vector, dtype=_FLOAT32).tobytes(),
    }


def vector_of(blob: bytes) -> Vector:
    """Read-only: it lies over the bytes that the database gave."""
    return np.frombuffer(blob, dtype=_FLOAT32)


def stored_vector(row: sqlite3.Row) -> StoredVector:
    return StoredVector(vector=vector_of(row["vector"]), truncated=bool(row["truncated"]))


def matrix_of(rows: Sequence[sqlite3.Row]) -> npt.NDArray[np.float32]:
    """One vector per row; all have the same dimensions."""
    return vector_of(b"".join(row["vector"] for row in rows)).reshape(len(rows), -1)


def _stored(value: TextValue) -> str | bytes | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _text_of(value: object) -> TextValue:
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, bytes):
        return str(value)
    text = value.decode(errors="replace")
    try:
        items = json.loads(text)
    except ValueError:
        return text
    # Another program's BLOB that is no list of strings is still a text.
    is_list = isinstance(items, list) and all(isinstance(item, str) for item in items)
    return tuple(items) if is_list else text


def _plain(value: object) -> str:
    return "" if value is None else str(value)
