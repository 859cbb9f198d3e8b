"""The mapped table and columns as SQL reads them: the only text ever put into a query."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from embed_pipeline.domain.collection import Collection, KeyType
from embed_pipeline.domain.embedding import FIRST_PROPERTY

EXCLUDED = "embedding_excluded"
"""The column that says why an entity is excluded."""

EVENTS = ("insert", "update", "delete")
"""For each a trigger counts."""

_LABELS = """e.{embedded} AS embedded, e.nothing_to_embed AS nothing_to_embed,
    e.embedding_excluded AS excluded, e.needs_embedding AS marked, e.embedding_queued AS queued"""


def quoted(identifier: str) -> str:
    """The identifier as SQL reads it literally, whatever characters it has."""
    if not identifier or "\x00" in identifier:
        raise ValueError("an SQL identifier is neither empty nor holds a NUL character")
    return '"' + identifier.replace('"', '""') + '"'


def saved_columns(mapping: Collection) -> tuple[str, ...]:
    """The properties that an entity is saved with, each once."""
    return tuple(
        dict.fromkeys(
            (mapping.key, mapping.name_property, mapping.type_property, *mapping.text_properties)
        )
    )


@lru_cache(maxsize=128)
def filled(statement: str, mapping: Collection, vector: str = FIRST_PROPERTY) -> str:
    """The statement with the mapping's names in it, quoted: the only text put into a query."""
    suffix = vector.removeprefix(FIRST_PROPERTY)
    embedded = quoted(f"embedded{suffix}")
    columns = [quoted(name) for name in saved_columns(mapping)]
    return statement.format(
        entity=quoted(mapping.label),
        key=quoted(mapping.key),
        key_column="INTEGER" if mapping.key_type is KeyType.INTEGER else "TEXT",
        name=quoted(mapping.name_property),
        entity_type=quoted(mapping.type_property),
        valid_to=quoted(mapping.valid_to),
        read=_listed("e." + quoted(name) for name in (EXCLUDED, *mapping.properties)),
        embedded=embedded,
        missing=quoted(f"embedding_missing{suffix}"),
        **{f"missing_{event}": quoted(f"embedding_missing{suffix}_{event}") for event in EVENTS},
        texts=_listed(quoted(name) for name in mapping.text_properties),
        facts="v.model AS model, v.version AS version, v.dimensions AS dimensions",
        labels=_LABELS.format(embedded=embedded),
        columns=_listed(columns),
        # Before them come the time of the save and the labels.
        blanks=_listed(f"?{position}" for position in range(4, len(columns) + 4)),
        changeable=_listed(columns[1:]),  # all but the key
        new_values=_listed("excluded." + column for column in columns[1:]),
        # The first three stand in the table already: key, name and type.
        text_columns="".join(f",\n    {column} TEXT" for column in columns[3:]),
    )


def _listed(parts: Iterable[str]) -> str:
    return ", ".join(parts)
