"""The recipe of a text: which properties and neighbours make it, and how it is put together.

The names in a recipe are validated here, because a store puts them into its queries.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from html.parser import HTMLParser

TextValue = str | tuple[str, ...] | None
"""A text property as the graph holds it: a string, a list of strings, or nothing."""

MOST_NEIGHBOURS = 1_000
"""Neighbours that one part of a text may name."""

MOST_RELATIONSHIPS = 10_000
"""A node with more relationships of a type contributes none of these neighbours to its text."""

LONGEST_HEADING = 100

HTML_VERSION = 1
"""Raise it when the same HTML gives another text: it is part of the recipe's hash."""

IDENTIFIER = r"[A-Za-z_][A-Za-z0-9_]{0,63}"
"""A label, property or type of relationship that settings can name."""

_PATH = re.compile(rf"(<?)-\[:({IDENTIFIER})\]-(>?)\(:({IDENTIFIER})\)")


class Direction(StrEnum):
    OUT = "out"
    IN = "in"
    BOTH = "both"


class RecipeError(ValueError):
    """A part of a recipe that cannot be used; a sentence says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """Text of the nodes one hop away: a line for each, in a fixed order.

    They are ordered by `order_by`, if given, and by all `properties`.
    """

    relationship: str
    direction: Direction
    label: str
    properties: tuple[str, ...]
    heading: str = ""
    """A line before the first neighbour; without neighbours there is none."""
    order_by: str | None = None
    limit: int = 20

    def __str__(self) -> str:
        left, right = (
            "<" * (self.direction is Direction.IN),
            ">" * (self.direction is Direction.OUT),
        )
        return f"{left}-[:{self.relationship}]-{right}(:{self.label})"


TextPart = str | Neighbours
"""A property of the entity, or neighbours."""


def parse_part(given: object) -> TextPart:
    """A part as a file of collections has it: a name, or a mapping with `path`."""
    if isinstance(given, str):
        return _identifier("text", given)
    if not isinstance(given, Mapping):
        raise RecipeError("a part of a text must be a property or a mapping with path")
    known = ("path", "properties", "heading", "order_by", "limit")
    if unknown := [str(name) for name in given if name not in known]:
        raise RecipeError(f"unknown key {unknown[0]!r}; a path takes {', '.join(known)}")
    direction, relationship, label = _parse_path(given.get("path"))
    order_by = given.get("order_by")
    return Neighbours(
        relationship=relationship,
        direction=direction,
        label=label,
        properties=_properties(given.get("properties")),
        heading=_heading(given.get("heading")),
        order_by=None if order_by is None else _identifier("order_by", order_by),
        limit=_limit(given.get("limit", 20)),
    )


def _parse_path(path: object) -> tuple[Direction, str, str]:
    found = _PATH.fullmatch(path.strip()) if isinstance(path, str) else None
    if found is None or (found[1] and found[3]):
        raise RecipeError(
            f"path must be one hop such as -[:WROTE]->(:Book), got {str(path)[:100]!r}"
        )
    direction = Direction.IN if found[1] else Direction.OUT if found[3] else Direction.BOTH
    return direction, found[2], found[4]


def _properties(given: object) -> tuple[str, ...]:
    if not isinstance(given, list) or not given:
        raise RecipeError("properties must be a list of the neighbours' properties")
    names = tuple(_identifier("properties", name) for name in given)
    if len(set(names)) < len(names):
        raise RecipeError("properties must name each property once")
    return names


def _heading(given: object) -> str:
    if given is None:
        return ""
    if not isinstance(given, str) or not 0 < len(given.strip()) <= LONGEST_HEADING:
        raise RecipeError(f"heading must be a text of at most {LONGEST_HEADING} characters")
    if len(given.splitlines()) > 1:
        raise RecipeError("heading must be one line")
    return given.strip()


def _limit(given: object) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or not 1 <= given <= MOST_NEIGHBOURS:
        raise RecipeError(f"limit must be a whole number from 1 to {MOST_NEIGHBOURS}")
    return given


def is_identifier(name: str) -> bool:
    return re.fullmatch(IDENTIFIER, name) is not None


def _identifier(role: str, given: object) -> str:
    if not isinstance(given, str) or not is_identifier(given):
        raise RecipeError(
            f"{role} must be a name of letters, digits and underscores, got {str(given)[:100]!r}"
        )
    return given


def parse_format(given: object) -> tuple[str, ...]:
    """The properties whose values are HTML, as a file has it: `{bio: html}`."""
    if not isinstance(given, Mapping) or any(how != "html" for how in given.values()):
        raise RecipeError("format must be a mapping of properties to html")
    return tuple(_identifier("format", name) for name in given)


def recipe_hash(*, label: str, key: str, text: Sequence[TextPart], html: Collection[str]) -> str:
    """Changes with whatever changes the key or the text of entities."""
    recipe = {
        "label": label,
        "key": key,
        "text": [part if isinstance(part, str) else asdict(part) for part in text],
        "html": {"properties": sorted(html), "version": HTML_VERSION} if html else None,
    }
    return hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()[:32]


# -- the text itself ------------------------------------------------------------------------


def embedding_text(values: Sequence[TextValue], html: Container[int] = ()) -> str:
    """The text to embed: a line per value, lists a line per item, empty ones left out.

    `html` are the positions of the values that are HTML.
    """
    lines: list[str] = []
    for position, value in enumerate(values):
        items: Iterable[str] = (value,) if isinstance(value, str) else value or ()
        if position in html:
            items = map(text_of_html, items)
        lines.extend(stripped for item in items if (stripped := item.strip()))
    return "\n".join(lines)


def version_of(text: str) -> str:
    """A hash of the text to embed: a changed text is a new version, so a new job."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def text_of_neighbours(part: Neighbours, found: Sequence[Sequence[TextValue]]) -> TextValue:
    """A line for each neighbour that was found, with its values in the order of the part."""
    lines = tuple(line for values in found if (line := _line(values)))
    heading = (f"{part.heading}:",) if part.heading else ()
    return (*heading, *lines) if lines else None


def _line(values: Sequence[TextValue]) -> str:
    items = (
        item for value in values for item in ((value,) if isinstance(value, str) else value or ())
    )
    return ", ".join(stripped for item in items if (stripped := item.strip()))


_BLOCKS = re.compile(
    "address|article|aside|blockquote|br|d[dlt]|div|figcaption|footer|form|h[1-6]|header|hr|li"
    "|main|nav|[ou]l|option|p|pre|section|table|t[dhr]"
)
_UNSEEN = ("script", "style")


def text_of_html(html: str) -> str:
    """What a reader sees: no tags, characters instead of entities, a line for each block."""
    if "<" not in html and "&" not in html:
        return html
    parser = _TextParser()
    parser.feed(html)
    parser.close()
    lines = (" ".join(line.split()) for line in "".join(parser.pieces).splitlines())
    return "\n".join(line for line in lines if line)


class _TextParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._unseen = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._unseen += tag in _UNSEEN
        if _BLOCKS.fullmatch(tag):
            self.pieces.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self._unseen = max(self._unseen - (tag in _UNSEEN), 0)
        if _BLOCKS.fullmatch(tag):
            self.pieces.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.pieces.append(data)
