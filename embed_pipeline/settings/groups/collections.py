"""The collections: from the file that EMBED_CONFIG names, or the environment's single one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from embed_pipeline.domain import reserved_names as reserved
from embed_pipeline.domain.collection import NAME, Collection, Filter, FilterValue, KeyType
from embed_pipeline.domain.recipe import RecipeError, TextPart, parse_format, parse_part
from embed_pipeline.settings.groups.entity import RESERVED, EntitySettings, environment_collection
from embed_pipeline.settings.groups.stores import StoreName
from embed_pipeline.settings.parsing.collection_schema import FILTER_KEYS, KEYS, MOST, REQUIRED
from embed_pipeline.settings.parsing.kinds import FILE, IDENTIFIER
from embed_pipeline.settings.parsing.variables import Findings, parse, setting, settings_of
from embed_pipeline.settings.parsing.yaml_file import Value, read_yaml

T = TypeVar("T")

VARIABLE = "EMBED_CONFIG"


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionSettings:
    config: Path | None = setting(
        VARIABLE,
        FILE,
        "A YAML file with several collections (labels with their own keys, names and texts),"
        " instead of the EMBED_ENTITY_ variables.",
    )


def collections_of(
    environ: Mapping[str, str], store: StoreName, findings: Findings
) -> tuple[Collection, ...]:
    path = parse(CollectionSettings, environ, findings).config
    single = environment_collection(environ, store, findings)
    if path is None:
        return (single,)
    beside = [one.variable for one in settings_of(EntitySettings).values()]
    if given := [variable for variable in beside if variable in environ]:
        findings.refuse(given[0], f"be unset: {VARIABLE} describes the collections")
    document = read_yaml(path, VARIABLE, findings)
    collections = _collections(document, store) if document else ()
    return collections or (single,)


def _collections(document: Value, store: StoreName) -> tuple[Collection, ...]:
    said = document.fields("the file", {"collections": None}).get("collections")
    if said is None:
        document.refuse("the file must have the key collections, with a list")
        return ()
    found: dict[str, Collection] = {}
    for number, value in enumerate(said.items("collections")):
        if number == MOST:
            value.refuse(f"a file has at most {MOST} collections")
            break
        one = _collection(value, store)
        if one is not None and one.name in found:
            value.refuse(f"there is another collection named {one.name}")
        elif one is not None:
            found[one.name] = one
    if not found:
        said.refuse("there must be at least one collection")
    return tuple(found.values())


def _collection(value: Value, store: StoreName) -> Collection | None:
    """None if anything about it was refused."""
    fields = value.fields("a collection", KEYS)
    if not value.is_mapping:
        return None
    if missing := [key for key in REQUIRED if key not in fields]:
        value.refuse(f"the collection lacks {' and '.join(missing)}")
        return None
    said: dict[str, Any] = {
        role: _identifier(fields[role], role)
        for role in ("label", "key", "name_property", "valid_to", "changed_at")
        if role in fields
    }
    said["name"] = _name(fields["name"])
    said["text"] = tuple(_part(one) for one in fields["text"].items("text"))
    if "format" in fields:
        said["html"] = _read(fields["format"], parse_format)
    said |= _type(fields.get("type"), label=said["label"])
    if "key_type" in fields:
        said["key_type"] = _key_type(fields["key_type"])
    if "filter" in fields:
        said["filter"] = _filter(fields["filter"])
    if None in said.values() or None in said["text"] or not said["text"]:
        return None
    collection = Collection(**said)
    _refuse_misfits(collection, fields, value, store)
    return collection


def _refuse_misfits(
    collection: Collection, fields: Mapping[str, Value], whole: Value, store: StoreName
) -> None:
    for role, must in reserved.misfits(collection, RESERVED[store]):
        fields.get({"type_property": "type"}.get(role, role), whole).refuse(f"{role} must {must}")
    if store is StoreName.SQLITE:
        for role in ("filter", "changed_at"):
            if role in fields:
                fields[role].refuse(
                    f"{role} is for a graph in Neo4j: one in SQLite has no other writers"
                )


def _name(value: Value) -> str | None:
    name = value.scalar()
    if isinstance(name, str) and NAME.fullmatch(name):
        return name
    value.refuse("name must be up to 32 small letters, digits and underscores, first a letter")
    return None


def _identifier(value: Value, role: str) -> str | None:
    name = value.scalar()
    try:
        return IDENTIFIER.parse(name if isinstance(name, str) else "")
    except ValueError:
        value.refuse(f"{role} must be {IDENTIFIER.allowed}")
        return None


def _part(value: Value) -> TextPart | None:
    return _read(value, parse_part) if value.is_mapping else _identifier(value, "text")


def _read(value: Value, read: Callable[[object], T]) -> T | None:
    try:
        return read(value.plain())
    except RecipeError as error:
        value.refuse(str(error))
    return None


def _type(value: Value | None, *, label: str | None) -> dict[str, Any]:
    if value is None:
        return {"fixed_type": label}
    if value.is_mapping:
        named = value.fields("type", {"property": None}).get("property")
        if named is None:
            value.refuse("type must be a word, or a mapping with the key property")
            return {"type_property": None}
        return {"type_property": _identifier(named, "type")}
    word = value.scalar()
    if isinstance(word, str) and word.strip() and len(word) <= 100:
        return {"fixed_type": word.strip()}
    value.refuse("type must be a word of up to 100 characters, or a mapping with the key property")
    return {"fixed_type": None}


def _key_type(value: Value) -> KeyType | None:
    kinds = [kind.value for kind in KeyType]
    if value.scalar() in kinds:
        return KeyType(str(value.scalar()))
    value.refuse(f"key_type must be {' or '.join(kinds)}")
    return None


def _filter(value: Value) -> Filter | None:
    fields = value.fields("filter", FILTER_KEYS)
    tests = [key for key in fields if key != "property"]
    if not value.is_mapping or "property" not in fields or len(tests) != 1:
        value.refuse("filter must have the key property, and one of equals, in, exists")
        return None
    named, test = _identifier(fields["property"], "filter"), fields[tests[0]]
    if tests == ["exists"]:
        if test.scalar() is not True:
            test.refuse("exists must be true")
        return Filter(property=named) if named and test.scalar() is True else None
    asked = list(test.items("in")) if tests == ["in"] else [test]
    values = [_filter_value(one) for one in asked]
    if named is None or None in values or not values:
        return None
    return Filter(property=named, values=tuple(one for one in values if one is not None))


def _filter_value(value: Value) -> FilterValue | None:
    said = value.scalar()
    if isinstance(said, bool | int):
        return said
    if isinstance(said, str) and said.isprintable() and not set(said) & set("'\"\\`{}"):
        return said
    value.refuse("a filter's value must be true, false, an integer, or a text without quotes")
    return None
