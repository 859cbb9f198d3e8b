"""Converts facts to plain, short values for a log line, without secrets and vectors."""

from __future__ import annotations

import math
import traceback
from collections.abc import Iterable, Mapping, Set
from dataclasses import fields, is_dataclass
from datetime import date, timedelta
from enum import Enum
from itertools import islice
from typing import Any

from embed_pipeline.telemetry.redaction import MASK, names_a_secret, redact

LONGEST_TEXT = 2_000
LONGEST_STACK = 8_000
MOST_ITEMS = 50
DEEPEST = 5
LONGEST_SECRET = 512


def plain_facts(facts: Mapping[str, object]) -> dict[str, Any]:
    """The facts as plain values; an exception as `error` becomes type, message and stack."""
    shown: dict[str, Any] = {}
    for name, value in facts.items():
        if name == "error" and isinstance(value, BaseException):
            shown = _error_facts(value) | shown
        else:
            shown[name] = plain(value, name=name)
    return shown


def plain(value: object, *, name: str = "") -> Any:
    """Never raises: a value that cannot be converted is shown by its type."""
    if names_a_secret(name) and value is not None:
        return MASK
    try:
        return _plain(value, longest=LONGEST_STACK if name == "stack" else LONGEST_TEXT)
    except Exception:  # a log line must not stop the work that it reports
        return f"<unprintable {type(value).__name__}>"


def shortened(text: str, longest: int = LONGEST_TEXT) -> str:
    """Redacted and cut. Only the first 4 × `longest` characters are processed."""
    head = text[: 4 * longest]
    shown = redact(head)
    if len(head) < len(text):
        # The cut may have split a secret, which redaction then does not recognize.
        shown = shown[: max(0, len(shown) - LONGEST_SECRET)] + "…"
    return shown if len(shown) <= longest else shown[:longest].rstrip("…") + "…"


def camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _error_facts(error: BaseException) -> dict[str, Any]:
    described = {
        "error_class": type(error).__name__,
        "message": plain(error),
        "stack": plain(_Stack(error), name="stack"),
    }
    # Our own errors carry their category; this layer does not import their classes.
    category = getattr(error, "category", None)
    if isinstance(category, Enum):
        described["error_type"] = category.value
    return described


class _Stack:
    """Formatted late, inside `plain`, because the __str__ of an error may raise."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __str__(self) -> str:
        return "".join(traceback.format_exception(self._error))


def _plain(value: object, *, longest: int, depth: int = 0) -> Any:
    value = _unwrapped(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)  # JSON has no NaN
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, date):  # a datetime is one too
        return value.isoformat()
    if hasattr(value, "shape"):
        return _array_note(value)
    if depth < DEEPEST and isinstance(value, Mapping):
        return _plain_mapping(value, longest=longest, depth=depth + 1)
    if depth < DEEPEST and isinstance(value, list | tuple | Set):
        return _plain_items(value, len(value), longest=longest, depth=depth + 1)
    text = str(value)
    if not text and isinstance(value, BaseException):
        text = type(value).__name__
    return shortened(text, longest)


def _unwrapped(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        # Not its repr, which may contain a vector.
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return value


def _plain_mapping(values: Mapping[Any, object], *, longest: int, depth: int) -> dict[str, Any]:
    shown = {
        shortened(str(key)): MASK
        if names_a_secret(str(key))
        else _plain(value, longest=longest, depth=depth)
        for key, value in islice(values.items(), MOST_ITEMS)
    }
    if len(values) > MOST_ITEMS:
        shown["…"] = f"{len(values) - MOST_ITEMS} more"
    return shown


def _plain_items(values: Iterable[object], count: int, *, longest: int, depth: int) -> list[Any]:
    shown = [_plain(value, longest=longest, depth=depth) for value in islice(values, MOST_ITEMS)]
    if count > MOST_ITEMS:
        shown.append(f"… {count - MOST_ITEMS} more")
    return shown


def _array_note(value: Any) -> Any:
    """Recognizes numpy arrays by their attributes: this layer does not import numpy."""
    if value.shape == () and hasattr(value, "item"):
        return _plain(value.item(), longest=LONGEST_TEXT)
    return f"<{type(value).__name__} of shape {tuple(value.shape)}>"
