"""What OpenAI would answer to a request for embeddings: its limits, its errors, made-up vectors."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from embed_pipeline.providers.tokens import tokenizer
from embed_pipeline_tests.openai_faults import Fault, Item, Reply, error_reply, unknown_model

MAX_INPUTS = 2048
MAX_REQUEST_TOKENS = 300_000
MAX_INPUT_TOKENS = 8192
MODELS: Mapping[str, int] = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}

Vectors = npt.NDArray[np.float32]


def tokens_of(text: str) -> int:
    """What is charged: one token for every four bytes begun, so that a test can count along."""
    return max(1, -(-len(text.encode()) // 4))


def exceeds(texts: Sequence[str], most: int) -> bool:
    """By the real tokenizer; not asked for short texts, because a token has a byte or more."""
    if sum(len(text.encode("utf-8", "surrogatepass")) for text in texts) <= most:
        return False
    return sum(len(tokenizer().encode_ordinary(text)) for text in texts) > most


def vector_for(text: str, dimensions: int) -> Vectors:
    """The unit vector this server gives the text, the same in every process."""
    (vector,) = _vectors_for([text], dimensions)
    return np.asarray(vector)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request, read leniently: what is wrong with it is said by `refused`."""

    model: str
    texts: tuple[str, ...]
    dimensions: int | None
    as_base64: bool

    @property
    def tokens(self) -> int:
        return sum(map(tokens_of, self.texts))


def read(body: bytes) -> Asked | None:
    """None where there is no list of texts to embed."""
    try:
        fields: dict[str, Any] = json.loads(body)
        given = fields["input"]
    except (ValueError, KeyError, TypeError):
        return None
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        return None
    return Asked(
        model=str(fields.get("model")),
        texts=tuple(texts),
        dimensions=fields.get("dimensions"),
        as_base64=fields.get("encoding_format") == "base64",
    )


def refused(asked: Asked, models: Mapping[str, int] = MODELS) -> Reply | None:
    """The error for the first limit that the request breaks."""
    if asked.model not in models:
        return unknown_model(asked.model)
    return _refused_inputs(asked) or _refused_dimensions(asked, models)


def answered(asked: Asked, fault: Fault | None = None, models: Mapping[str, int] = MODELS) -> Reply:
    dimensions = asked.dimensions or models[asked.model]
    items: Sequence[Item] = list(enumerate(_vectors_for(asked.texts, dimensions)))
    if fault is not None and fault.change is not None:
        items = fault.change(items)
    encode = _as_base64 if asked.as_base64 else _as_floats
    answer = {
        "object": "list",
        "data": [
            {"object": "embedding", "index": index, "embedding": encode(vector)}
            for index, vector in items
        ],
        "model": asked.model,
        "usage": {"prompt_tokens": asked.tokens, "total_tokens": asked.tokens},
    }
    return Reply(status=200, body=json.dumps(answer).encode())


def _refused_inputs(asked: Asked) -> Reply | None:
    if not 0 < len(asked.texts) <= MAX_INPUTS:
        return error_reply(
            400,
            f"Invalid 'input': expected an array of 1 to {MAX_INPUTS}, got {len(asked.texts)}.",
            code="array_above_max_length",
            param="input",
        )
    for position, text in enumerate(asked.texts):
        if not text:
            return error_reply(
                400, f"Invalid 'input[{position}]': input cannot be an empty string.", param="input"
            )
        if exceeds([text], MAX_INPUT_TOKENS):
            return error_reply(
                400,
                f"This model's maximum context length is {MAX_INPUT_TOKENS} tokens, "
                f"however you requested more for 'input[{position}]'.",
            )
    if asked.tokens > MAX_REQUEST_TOKENS or exceeds(asked.texts, MAX_REQUEST_TOKENS):
        kind = "max_tokens_per_request"
        message = f"Requested {asked.tokens} tokens, max {MAX_REQUEST_TOKENS} tokens per request."
        return error_reply(400, message, kind=kind, code=kind)
    return None


def _refused_dimensions(asked: Asked, models: Mapping[str, int]) -> Reply | None:
    """Only the third generation takes them; like it, servers of other models answer 400."""
    if asked.dimensions is None:
        return None
    if not asked.model.startswith("text-embedding-3-"):
        return error_reply(400, "This model does not support specifying dimensions.")
    if not 0 < asked.dimensions <= models[asked.model]:
        return error_reply(400, f"Invalid value for 'dimensions' = {asked.dimensions}.")
    return None


def _vectors_for(texts: Sequence[str], dimensions: int) -> Vectors:
    """A slice of one noise table, headed by the text's own hash.

    Cheap on purpose: in a benchmark the server must not be what is measured.
    """
    vectors = np.empty((len(texts), dimensions), np.float32)
    noise = _noise()
    for row, text in zip(vectors, texts, strict=True):
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        start = int.from_bytes(digest[:4], "little") % (len(noise) - dimensions)
        row[:] = noise[start : start + dimensions]
        row[:4] = _numbers(digest)[:dimensions]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


@cache
def _noise() -> Vectors:
    return _numbers(hashlib.shake_256(b"noise").digest(4 * 65_536))


def _numbers(digest: bytes) -> Vectors:
    """From -1 to 1, never 0."""
    return ((np.frombuffer(digest, "<u4") + 0.5) / 2.0**31 - 1).astype(np.float32)


def _as_base64(vector: Vectors) -> str:
    return base64.b64encode(vector.astype("<f4").tobytes()).decode("ascii")


def _as_floats(vector: Vectors) -> list[float]:
    return [float(number) for number in vector]
