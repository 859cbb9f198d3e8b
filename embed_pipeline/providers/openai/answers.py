"""Reads the vectors out of an answer of OpenAI's embeddings API."""

from __future__ import annotations

from operator import index as as_index
from typing import Any

import numpy as np
import pybase64
from pydantic_core import from_json

from embed_pipeline.errors import MalformedResponse
from embed_pipeline.ports.embedding_provider import Vectors


def decoded(body: bytes) -> tuple[Vectors, int]:
    """Rows in the order of their `index`, and the tokens paid for.

    The body is read directly: the SDK's models check nothing and cost more than the decoding.
    """
    try:
        # Many times faster than the standard library over the long strings that vectors are.
        answer = from_json(body, cache_strings="keys")
        vectors = _rows(answer["data"])
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as exc:
        raise MalformedResponse("The answer holds no embeddings that can be read.") from exc
    return vectors, _tokens(answer.get("usage"))


def _tokens(usage: object) -> int:
    """Zero where it cannot be read: paid vectors are not thrown away for a missing number."""
    reported: Any = usage.get("total_tokens") if isinstance(usage, dict) else None
    try:
        return max(int(reported), 0)
    except (OverflowError, TypeError, ValueError):
        return 0


def _rows(items: list[dict[str, Any]]) -> Vectors:
    """Each item is freed as it is read: answers have many megabytes, and several arrive at once."""
    vectors: Vectors | None = None
    for item in items:
        row = _row(item.pop("embedding"))
        if vectors is None:
            # Rows that no item fills stay NaN, which `checked` refuses.
            vectors = np.full((len(items), len(row)), np.nan, np.float32)
        if row.shape != vectors.shape[1:]:
            raise ValueError("their lengths differ")  # numpy would repeat a single number
        place = as_index(item["index"])
        if place < 0:
            raise ValueError("an index is negative")  # numpy would count it from the end
        vectors[place] = row
    if vectors is None:
        raise ValueError("there are none")
    return vectors


def _row(embedding: str | list[float]) -> Vectors:
    if isinstance(embedding, str):
        return np.frombuffer(pybase64.b64decode(embedding, validate=True), "<f4")
    # Some compatible servers have no base64. What float32 cannot hold becomes infinite, and
    # `checked` refuses it.
    with np.errstate(over="ignore"):
        return np.asarray(embedding, np.float64).astype(np.float32)
