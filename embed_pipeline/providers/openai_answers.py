"""What an answer of OpenAI's embeddings API holds."""

from __future__ import annotations

import numpy as np
import pybase64
from pydantic_core import from_json

from embed_pipeline.errors import MalformedResponse
from embed_pipeline.ports.embedding_provider import Vectors


def decoded(body: bytes) -> tuple[Vectors, int]:
    """Rows in the order of their `index`, and the tokens paid for.

    Read from the body itself: the SDK's models check nothing and cost more than the decoding.
    """
    try:
        # Many times faster than the standard library over the long strings that vectors are.
        answer = from_json(body, cache_strings="keys")
        rows = {item["index"]: _row(item["embedding"]) for item in answer["data"]}
        vectors = np.stack([rows[index] for index in range(len(rows))])
        tokens = int((answer.get("usage") or {}).get("total_tokens") or 0)
    except (AttributeError, KeyError, TypeError, ValueError) as exc:
        raise MalformedResponse("The answer holds no embeddings that can be read.") from exc
    return vectors, tokens


def _row(embedding: str | list[float]) -> Vectors:
    if isinstance(embedding, str):
        return np.frombuffer(pybase64.b64decode(embedding, validate=True), "<f4").astype(np.float32)
    # Some compatible servers know no base64. What float32 cannot hold becomes infinite: checked.
    with np.errstate(over="ignore"):
        return np.asarray(embedding, np.float64).astype(np.float32)
