"""Between the graph's nodes and values; only this module knows how values are stored.

Strings are strings and lists of strings are lists. Other programs store other types
too: a number, a boolean or a time in a text property is read as Cypher's `toString` would write
it, a list item by item, and bytes or points are no text. Such values are rewritten only when a
caller gives a new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import Any

import neo4j.time
import numpy as np
from neo4j.vector import Vector as BoltVector

from embed_pipeline.domain.collection import Collection, KeyType, is_integer
from embed_pipeline.domain.embedding import (
    StoredVector,
    Vector,
    VectorFacts,
    VectorWrite,
    embedded_label,
)
from embed_pipeline.domain.entity import Entity
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.domain.partition import ERASED, NO_KEY, Labels
from embed_pipeline.domain.recipe import (
    TextPart,
    TextValue,
    embedding_text,
    text_of_neighbours,
    version_of,
)
from embed_pipeline.stores.encoding import INVALID_TIME
from embed_pipeline.stores.graph.transaction import Change
from embed_pipeline.stores.neo4j.driver.database import Row
from embed_pipeline.stores.neo4j.driver.times import moment_of
from embed_pipeline.stores.neo4j.graph.names import (
    EXCLUDED,
    MARKER,
    NOTHING,
    QUEUED,
    REASON,
    UNSEEN,
    own,
    vector_names,
)


def entity_of(values: Sequence[Any], mapping: Collection) -> Entity:
    """By position: uid, name, type, valid-to, why excluded, then the parts of its text."""
    uid, name, entity_type, valid_to, excluded, *parts = values
    texts = tuple(zip(mapping.text, parts, strict=True))
    return Entity(
        uid=EntityUid(str(uid)),
        collection=mapping.name,
        name=_as_text(name) or "",
        entity_type=mapping.fixed_type or _as_text(entity_type) or "",
        texts=tuple(_part_of(part, value) for part, value in texts),
        valid_to=None if valid_to is None else moment_of(valid_to) or INVALID_TIME,
        erased=excluded == ERASED,
        html=mapping.html_positions,
        left_out=tuple(str(p) for p, value in texts if value is None and p in mapping.neighbours),
    )


def _part_of(part: TextPart, value: Any) -> TextValue:
    """Neighbours arrive as a list for each; null stands for too many relationships."""
    if isinstance(part, str):
        return _text_of(value)
    return text_of_neighbours(part, [[_text_of(one) for one in found] for found in value or ()])


def facts_of(values: Sequence[Any] | None) -> VectorFacts | None:
    """A vector without model or version is another program's, so it is of no known model."""
    if values is None:
        return None
    model, version, dimensions = values
    return VectorFacts(
        model=_as_text(model) or "", version=_as_text(version) or "", dimensions=dimensions
    )


def labels_of(values: Sequence[Any], mapping: Collection, *, of: Sequence[str]) -> Labels:
    """Of the labels of models, those whose vectors were asked for."""
    names, reason = values
    models = (label for label in map(embedded_label, of) if label in names)
    return Labels(
        embedded=frozenset(label for label in models if own(label, mapping) in names),
        nothing_to_embed=own(NOTHING, mapping) in names,
        excluded=(_as_text(reason) or "") if own(EXCLUDED, mapping) in names else None,
        marked=MARKER in names,
        queued=QUEUED in names,
    )


def is_right(values: Sequence[Any], mapping: Collection, *, labels: Set[str], model: str) -> bool:
    """Whether the entity is embedded, current and labelled so, by what is sent of it.

    An audit meets mostly those: of plain texts nothing is made.
    """
    entity, facts, (names, _reason) = values
    (_uid, _name, _type, valid_to, _excluded, *texts) = entity
    if labels != set(names) or not facts or facts[0] != model or valid_to is not None:
        return False
    is_plain = not mapping.html and all(map(_is_plain, texts))
    text = embedding_text(texts) if is_plain else entity_of(entity, mapping).text
    return bool(text) and facts[1] == version_of(text)


def _is_plain(value: object) -> bool:
    if type(value) is list:
        return all(type(item) is str for item in value)
    return value is None or type(value) is str


def change_row(change: Change, mapping: Collection) -> Row:
    """What a save has to write: nothing that reads the same already, whatever its type there."""
    before, after = _names(change.labels_before, mapping), _names(change.labels, mapping)
    properties = _changed_properties(change.entity, change.before, mapping)
    if change.labels.excluded != change.labels_before.excluded:
        properties[own(REASON, mapping)] = change.labels.excluded
    for name in (*change.dropped, *change.disowned):
        properties |= dict.fromkeys(vector_names(name).beside)
    return {
        "uid": key_of(change.entity.uid, mapping),
        "properties": properties | dict.fromkeys(change.dropped),
        "add": sorted(after - before),
        "remove": sorted(before - after),
    }


def _names(labels: Labels, mapping: Collection) -> set[str]:
    ours = {
        own(NOTHING, mapping): labels.nothing_to_embed,
        own(EXCLUDED, mapping): labels.excluded is not None,
        own(UNSEEN, mapping): labels.excluded == NO_KEY,
        MARKER: labels.marked,
        QUEUED: labels.queued,
    }
    embedded = {name for label in labels.embedded for name in (label, own(label, mapping))}
    return embedded | {name for name, is_set in ours.items() if is_set}


def _changed_properties(
    entity: Entity, existing: Entity | None, mapping: Collection
) -> dict[str, object]:
    if entity is existing:
        return {}
    after = _properties(entity, mapping)
    before = _properties(existing, mapping) if existing else {}
    changed: dict[str, object] = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in after.items()
        if value != before.get(name)
    }
    return changed | {mapping.valid_to: None} if existing else changed


def key_of(uid: str, mapping: Collection) -> str | int:
    """The key as the graph stores it."""
    return uid if mapping.key_type is KeyType.STRING else int(uid)


def keys_of(uids: Iterable[str], mapping: Collection) -> list[str | int]:
    """Without those that no node of the collection can have."""
    if mapping.key_type is KeyType.STRING:
        return list(uids)
    return [int(uid) for uid in uids if is_integer(uid)]


def start_of(uid: str, mapping: Collection) -> str | int | float:
    """Behind which key a walk goes on; the empty one is before all others."""
    if mapping.key_type is KeyType.STRING:
        return uid
    return int(uid) if uid else float("-inf")


def written_row(write: VectorWrite, mapping: Collection, *, unmark: bool, packed: bool) -> Row:
    """`unmark` is a list because Cypher's only condition around a write is a loop."""
    return {
        "uid": key_of(write.uid, mapping),
        "version": write.version,
        "vector": packed_vector(write.vector) if packed else write.vector.tolist(),
        "truncated": True if write.truncated else None,
        "unmark": [True] if unmark else [],
    }


class HiddenRows(list[Row]):
    """The driver formats every statement with its parameters for a debug log, even if it is off.

    Of 250 vectors that takes longer than to send them, and vectors belong in no log.
    """

    def __repr__(self) -> str:
        return f"[{len(self)} rows]"


def packed_vector(vector: Vector) -> BoltVector:
    """From bytes in the order of the wire: from an array it would ask numpy for its type's name."""
    return BoltVector.from_bytes(vector.astype(">f4").tobytes(), "f32")


def stored_vector(row: Row) -> StoredVector:
    # Another program's number that no float32 can hold becomes infinite.
    with np.errstate(over="ignore"):
        vector = np.array(row["vector"], dtype=np.float32)
    return StoredVector(vector=vector, truncated=bool(row["truncated"]))


def _properties(entity: Entity, mapping: Collection) -> dict[str, TextValue]:
    # The texts come last: they hold a missing type as missing, not as an empty string.
    typed = {} if mapping.fixed_type else {mapping.type_property: entity.entity_type or None}
    return {
        mapping.name_property: entity.name,
        **typed,
        **{
            part: value
            for part, value in zip(mapping.text, entity.texts, strict=True)
            if isinstance(part, str)
        },
    }


def _text_of(value: object) -> TextValue:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        texts = (item if type(item) is str else _as_text(item) for item in value)
        return tuple(text for text in texts if text is not None)
    return _as_text(value)


def _as_text(value: object) -> str | None:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case neo4j.time.DateTime() | neo4j.time.Date() | neo4j.time.Time():
            return value.iso_format()
        case _:
            return None
