"""What every provider needs: checks of texts and vectors, and the limits of a request."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from embed_pipeline.errors import InputRefused, MalformedResponse
from embed_pipeline.ports.embedding_provider import Limits, Vectors
from embed_pipeline.settings import ProviderSettings


def limits_for(settings: ProviderSettings, own: Limits) -> Limits:
    """The provider's own limits, replaced by those that are set; one text fits a request."""
    tokens = settings.max_request_tokens or own.tokens
    per_input = settings.max_input_tokens or own.tokens_per_input
    if tokens is not None and per_input is not None:
        per_input = min(per_input, tokens)
    return Limits(
        inputs=settings.max_inputs or own.inputs, tokens=tokens, tokens_per_input=per_input
    )


def refuse_unusable(texts: Sequence[str]) -> None:
    """Every provider refuses empty texts and broken Unicode, so the request would be wasted."""
    for position, text in enumerate(texts):
        if not text:
            raise InputRefused(f"Text {position} of {len(texts)} is empty.")
        try:
            text.encode()
        except UnicodeEncodeError as exc:
            raise InputRefused(
                f"Text {position} of {len(texts)} is not valid Unicode at character {exc.start}."
            ) from exc


def checked(vectors: Vectors, *, count: int, dimensions: int) -> Vectors:
    """The same vectors: one finite, non-zero float32 row per text, of the right length.

    A zero row is malformed because it has no direction: cosine similarity divides by its length.
    """
    if vectors.ndim != 2 or vectors.dtype != np.float32:
        raise MalformedResponse(
            f"The vectors are not a float32 table but {vectors.dtype} {vectors.shape}."
        )
    if len(vectors) != count:
        raise MalformedResponse(f"{len(vectors)} vectors came back for {count} texts.")
    if vectors.shape[1] != dimensions:
        raise MalformedResponse(
            f"The vectors have {vectors.shape[1]} dimensions where {dimensions} are set"
            " (EMBEDDING_DIMENSIONS)."
        )
    _refuse_rows(vectors, ~np.isfinite(vectors).all(axis=1), "holds a number that is not finite")
    _refuse_rows(vectors, ~vectors.any(axis=1), "is all zero")
    return vectors


def _refuse_rows(vectors: Vectors, is_bad: npt.ArrayLike, complaint: str) -> None:
    bad = np.flatnonzero(is_bad)
    if bad.size:
        raise MalformedResponse(f"Vector {bad[0]} of {len(vectors)} {complaint}.")
