"""What a file of collections may say, as a JSON schema: for the parser, and for editors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from embed_pipeline.domain.collection import NAME, KeyType
from embed_pipeline.domain.recipe import LONGEST_HEADING, MOST_NEIGHBOURS

MOST = 32
"""Collections of a file."""

_IDENTIFIER = {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]{0,63}$"}
_SCALAR = {"type": ["string", "integer", "boolean"]}
FILTER_KEYS: Mapping[str, Any] = {
    "property": _IDENTIFIER,
    "equals": _SCALAR,
    "in": {"type": "array", "items": _SCALAR, "minItems": 1},
    "exists": {"const": True},
}
_NEIGHBOURS = {
    "type": "object",
    "required": ["path", "properties"],
    "additionalProperties": False,
    "description": "Nodes one hop away. Only for Neo4j.",
    "properties": {
        "path": {"type": "string", "examples": ["-[:WROTE]->(:Book)"]},
        "properties": {"type": "array", "items": _IDENTIFIER, "minItems": 1},
        "heading": {"type": "string", "maxLength": LONGEST_HEADING},
        "order_by": _IDENTIFIER,
        "limit": {"type": "integer", "minimum": 1, "maximum": MOST_NEIGHBOURS, "default": 20},
    },
}
KEYS: Mapping[str, Any] = {
    "name": {
        "type": "string",
        "pattern": f"^{NAME.pattern}$",
        "description": "What uids, metrics and commands call it.",
    },
    "label": {**_IDENTIFIER, "description": "The label of its nodes."},
    "key": {**_IDENTIFIER, "description": "The property that identifies a node."},
    "key_type": {
        "enum": [kind.value for kind in KeyType],
        "default": "string",
        "description": "Nodes whose key has another type are unseen.",
    },
    "name_property": {
        **_IDENTIFIER,
        "default": "name",
        "description": "The property with the name.",
    },
    "type": {
        "description": "A word for all, or the property that has it. Without it: the label.",
        "oneOf": [
            {"type": "string"},
            {
                "type": "object",
                "required": ["property"],
                "additionalProperties": False,
                "properties": {"property": _IDENTIFIER},
            },
        ],
    },
    "text": {
        "type": "array",
        "items": {"anyOf": [_IDENTIFIER, _NEIGHBOURS]},
        "minItems": 1,
        "description": "The properties and neighbours that make the text to embed, in order.",
    },
    "format": {
        "type": "object",
        "additionalProperties": {"const": "html"},
        "description": "The text properties that are HTML: only what a reader sees is embedded.",
    },
    "valid_to": {
        **_IDENTIFIER,
        "default": "validTo",
        "description": "The property with the end of validity; a node without it is valid.",
    },
    "changed_at": {
        **_IDENTIFIER,
        "description": "A property with the time of the last change. Only for Neo4j.",
    },
    "filter": {
        "type": "object",
        "required": ["property"],
        "minProperties": 2,
        "maxProperties": 2,
        "additionalProperties": False,
        "properties": FILTER_KEYS,
        "description": "Only nodes that fit are entities. Only for Neo4j.",
    },
}
"""The keys of a collection, as a JSON schema says them."""

REQUIRED = ("name", "label", "key", "text")


def json_schema() -> dict[str, Any]:
    """For editors: completion, and mistakes underlined."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Collections of embed-pipeline (EMBED_CONFIG)",
        "type": "object",
        "required": ["collections"],
        "additionalProperties": False,
        "properties": {
            "collections": {
                "type": "array",
                "minItems": 1,
                "maxItems": MOST,
                "items": {
                    "type": "object",
                    "required": list(REQUIRED),
                    "additionalProperties": False,
                    "properties": dict(KEYS),
                },
            }
        },
    }
