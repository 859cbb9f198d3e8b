"""Values as parameters of SQLite."""

from __future__ import annotations

import json
from collections.abc import Iterable

_encode = json.JSONEncoder(separators=(",", ":")).encode


def as_list(values: Iterable[object]) -> str:
    """A list parameter, for `json_each`: one text and one plan for any length."""
    return _encode(list(values))
