"""Which nodes of a label belong to a collection: conditions on `e` that statements are filled with.

All of them are empty or constant for a graph with one collection of string keys and no filter.
"""

from __future__ import annotations

from embed_pipeline.domain.collection import Collection, Filter, FilterValue, KeyType
from embed_pipeline.domain.embedding import embedded_label
from embed_pipeline.domain.partition import FILTERED, NO_KEY, OTHER_COLLECTION
from embed_pipeline.stores.neo4j.graph.names import (
    MARKER,
    NEIGHBOUR_CHANGED,
    NEIGHBOUR_EXPANDING,
    own,
    quoted,
)


def membership(collection: Collection, vector: str) -> dict[str, str]:
    """`{is_key}` is true of a usable key. `{where}` and `{also}` are the other conditions, as a
    clause and behind others; `{belongs}` is everything."""
    others = collection.standing.others
    conditions = _conditions(collection)
    joined = " AND ".join(conditions)
    is_key = _is_key(collection)
    return {
        "is_key": is_key,
        "where": f"WHERE {joined}" if conditions else "",
        "also": f" AND {joined}" if conditions else "",
        "belongs": " AND ".join((is_key, *conditions)),
        "why_not": _why_not(collection),
        "is_elsewhere": _has_label(others) if others else "false",
        "is_embedded": _is_embedded(collection, vector),
        "count_embedded": _count_embedded(collection, vector),
        "count_marked": _count_marked(collection),
        "no_entity": "".join(f"&!{quoted(one.label)}" for one in (collection, *others)),
    }


def _is_key(collection: Collection) -> str:
    if collection.key_type is KeyType.INTEGER:
        return f"e.{quoted(collection.key)} IS :: INTEGER NOT NULL"
    return f"e.{quoted(collection.key)} > ''"


def _conditions(collection: Collection) -> list[str]:
    """What a node with the label and a usable key has to fulfil as well."""
    key, standing = quoted(collection.key), collection.standing
    found = []
    if collection.key_type is KeyType.INTEGER:
        found.append(_is_key(collection))  # a float may equal an integer
    if collection.filter:
        found.append(_fits(collection.filter))
    if not standing.prefix and collection.key_type is KeyType.STRING:
        # Such a key would be taken for a key of the other collection.
        prefixes = (one.standing.prefix for one in standing.others)
        found += [f"NOT e.{key} STARTS WITH '{prefix}/'" for prefix in prefixes]
    return found + [f"NOT {_owns(one)}" for one in standing.earlier]


def _owns(collection: Collection) -> str:
    has_label = f"e:{quoted(collection.label)}"
    if collection.filter is None:
        return has_label
    return f"coalesce({has_label} AND {_fits(collection.filter)}, false)"


def _fits(wanted: Filter) -> str:
    named = f"e.{quoted(wanted.property)}"
    if not wanted.values:
        return f"{named} IS NOT NULL"
    return f"{named} IN [{', '.join(map(_literal, wanted.values))}]"


def _literal(value: FilterValue) -> str:
    """Texts with quotes or backslashes are refused by the settings; here as well."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if not value.isprintable() or set(value) & set("'\"\\`{}"):
        raise ValueError(f"{value!r} cannot be a value of a filter")
    return f"'{value}'"


def _why_not(collection: Collection) -> str:
    is_key = f"NOT coalesce({_is_key(collection)}, false)"
    cases = [f"WHEN {is_key} THEN '{NO_KEY}'"]
    if collection.filter:
        cases.append(f"WHEN NOT coalesce({_fits(collection.filter)}, false) THEN '{FILTERED}'")
    cases += [f"WHEN {_owns(one)} THEN '{OTHER_COLLECTION}'" for one in collection.standing.earlier]
    return f"CASE {' '.join(cases)} ELSE '{NO_KEY}' END"


def _has_label(collections: tuple[Collection, ...]) -> str:
    return "e:" + "|".join(dict.fromkeys(quoted(one.label) for one in collections))


def _is_embedded(collection: Collection, vector: str) -> str:
    label = embedded_label(vector)
    if collection.standing.prefix:
        return f"e:{quoted(own(label, collection))}"
    theirs = "".join(f" AND NOT e:{quoted(own(label, one))}" for one in collection.standing.others)
    return f"(e:{quoted(label)}{theirs})"


def _count_marked(collection: Collection) -> str:
    """The marker is shared, so it is counted with the first collection only.

    A changed neighbour counts as one until its dependents are marked: discovery is due.
    """
    labels = [] if collection.standing.prefix else [MARKER]
    if collection.neighbours:
        labels += [own(name, collection) for name in (NEIGHBOUR_CHANGED, NEIGHBOUR_EXPANDING)]
    return " + ".join(f"COUNT {{ (:{quoted(label)}) }}" for label in labels) or "0"


def _count_embedded(collection: Collection, vector: str) -> str:
    """The first collection has no label of its own: its vectors are those of no other."""
    label = embedded_label(vector)
    count = f"COUNT {{ (:{quoted(own(label, collection))}) }}"
    if collection.standing.prefix:
        return count
    others = (own(label, one) for one in collection.standing.others)
    return count + "".join(f" - COUNT {{ (:{quoted(other)}) }}" for other in others)
