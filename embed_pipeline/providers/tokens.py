"""What a text counts against a provider's limits, and how it is cut to the limit of one input."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Sequence
from functools import cache
from typing import Protocol

from embed_pipeline.ports.embedding_provider import Input, Limits

# The tokenizer refuses texts of 200 000 tokens. A limit of 100 000, the most that can be set, and
# what one more step of characters of four bytes can add stay below that.
_STEP = 24_000
_LONGEST_READ = 999_999
"""The tokenizer takes no more characters; what lies beyond is cut off, whatever it is."""
# What follows a beginning can change its last tokens; this many are more than it ever changes.
_UNSETTLED = 256

_loading = threading.Lock()


def fitted(texts: Sequence[str], limits: Limits) -> list[Input]:
    """Each text as it can be sent, in order; `embed` refuses what is no valid text.

    Where one input is limited the tokenizer counts, and the estimate from the bytes, and the
    larger is told: a request is refused by either. Elsewhere the estimate is enough.
    """
    return [_fitted(text, limits.tokens_per_input) for text in texts]


def estimated(text: str) -> int:
    """A token for every four bytes begun."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // 4)


def _fitted(text: str, limit: int | None) -> Input:
    if limit is None or not _is_valid(text):
        return Input(text=text, tokens=estimated(text))
    beginning, tokens = _read(text, enough=limit)
    if len(beginning) == len(text) and len(tokens) <= limit:
        return Input(text=text, tokens=max(len(tokens), estimated(text)))
    kept, count = _cut(tokens, limit)
    return Input(text=kept, tokens=max(count, estimated(kept)), truncated=True)


def _is_valid(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _read(text: str, *, enough: int) -> tuple[str, list[int]]:
    """The text and its tokens; of a long one a beginning that has more than `enough` for certain.

    A book then costs no more than its first pages.
    """
    length = 2 * _STEP
    while True:
        beginning = text[:length]
        tokens = encoding().encode_ordinary(beginning)
        if length >= min(len(text), _LONGEST_READ) or len(tokens) > enough + _UNSETTLED:
            return beginning, tokens
        length = min(length + _STEP, _LONGEST_READ)


def _cut(tokens: list[int], limit: int) -> tuple[str, int]:
    """The text of the first tokens and how many it has: `limit`, or a few less.

    A token may end inside a character, and what is left of it without that character may be two.
    """
    kept = limit
    while True:
        text = encoding().decode_bytes(tokens[:kept]).decode("utf-8", "ignore")
        count = len(encoding().encode_ordinary(text))
        if count <= limit:
            return text, count
        kept -= count - limit


class _Encoding(Protocol):
    def encode_ordinary(self, text: str) -> list[int]: ...

    def decode_bytes(self, tokens: Sequence[int]) -> bytes: ...


def encoding() -> _Encoding:
    """The tokenizer of OpenAI's embedding models, loaded once in a process."""
    with _loading:
        return _load()


@cache
def _load() -> _Encoding:
    # A second and a hundred megabytes: only for those who count.
    with warnings.catch_warnings():
        # It reads its vocabulary in a way that is deprecated in Python 3.11.
        warnings.simplefilter("ignore", DeprecationWarning)
        from bpe_openai import get_encoding  # type: ignore[import-untyped]

        loaded: _Encoding = get_encoding("cl100k_base")
    return loaded
