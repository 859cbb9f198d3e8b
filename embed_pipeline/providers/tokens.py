"""Counts the tokens of a text, and cuts it to the limit of one input."""

from __future__ import annotations

import threading
from base64 import b64decode
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from embed_pipeline.ports.embedding_provider import Input, Limits
from embed_pipeline.providers.data import CL100K_BASE

if TYPE_CHECKING:
    import tiktoken

_STEP = 24_000
"""Characters that are encoded first, so that a book costs no more than its first pages."""
# The text behind a prefix can change the last tokens of the prefix, but never as many as this.
_UNSTABLE = 256

_PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
    r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
"""How `cl100k_base` splits a text before it looks for tokens."""

_loading = threading.Lock()


def fitted(texts: Sequence[str], limits: Limits) -> list[Input]:
    """Each text as it can be sent, in order; `embed` refuses invalid ones.

    Where one input is limited, the larger of the tokenizer's count and the estimate from the bytes
    is reported, because a provider may refuse a request by either. Otherwise the estimate is
    enough.
    """
    return [_fitted(text, limits.tokens_per_input) for text in texts]


def estimated(text: str) -> int:
    """One token for every four bytes, rounded up."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // 4)


def _fitted(text: str, limit: int | None) -> Input:
    if limit is None or not _is_valid(text):
        return Input(text=text, tokens=estimated(text))
    tokens = _first_tokens(text, enough=limit)
    if len(tokens) <= limit:
        return Input(text=text, tokens=max(len(tokens), estimated(text)))
    kept, count = _cut(tokens, limit)
    return Input(text=kept, tokens=max(count, estimated(kept)), truncated=True)


def _is_valid(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _first_tokens(text: str, *, enough: int) -> list[int]:
    """All tokens of a text that has at most `enough`; otherwise more, and the first are final."""
    length = _STEP
    while True:
        tokens = tokenizer().encode_ordinary(text[:length])
        if length >= len(text) or len(tokens) > enough + _UNSTABLE:
            return tokens
        length *= 2


def _cut(tokens: list[int], limit: int) -> tuple[str, int]:
    """The text of the first tokens, and their number: `limit` or a few less.

    A token may end inside a character, and without that character the rest may be two tokens.
    """
    kept = limit
    while True:
        try:
            text = tokenizer().decode(tokens[:kept], errors="strict")
        except ValueError:  # the end of a character is missing
            kept -= 1
            continue
        count = len(tokenizer().encode_ordinary(text))
        if count <= limit:
            return text, count
        kept -= count - limit


def tokenizer() -> tiktoken.Encoding:
    """The tokenizer of OpenAI's embedding models, loaded once in a process."""
    with _loading:
        return _load()


@cache
def _load() -> tiktoken.Encoding:
    """From the ranks in this package: tiktoken itself would download them."""
    import tiktoken

    lines = CL100K_BASE.read_bytes().splitlines()
    ranks = {b64decode(token): int(rank) for token, rank in map(bytes.split, lines)}
    return tiktoken.Encoding(
        "cl100k_base", pat_str=_PATTERN, mergeable_ranks=ranks, special_tokens={}
    )
