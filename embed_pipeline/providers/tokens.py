"""Counts the tokens of a text, and cuts it to the limit of one input."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Sequence
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, FileFinder
from pathlib import Path
from typing import Protocol

from embed_pipeline.ports.embedding_provider import Input, Limits

_STEP = 24_000
"""Characters that are encoded at a time, so that a book costs no more than its first pages."""
# The text behind a prefix can change the last tokens of the prefix, but never as many as this.
_UNSTABLE = 256

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
    count = tokenizer().count_till_limit(text, limit)
    if count is not None:
        return Input(text=text, tokens=max(count, estimated(text)))
    kept, count = _cut(_first_tokens(text, enough=limit), limit)
    return Input(text=kept, tokens=max(count, estimated(kept)), truncated=True)


def _is_valid(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _first_tokens(text: str, *, enough: int) -> list[int]:
    """The first tokens of a text that has more than `enough`; at least that many are final."""
    length = _STEP
    while True:
        tokens = tokenizer().encode(text[:length])
        if length >= len(text) or len(tokens) > enough + _UNSTABLE:
            return tokens
        length += _STEP


def _cut(tokens: list[int], limit: int) -> tuple[str, int]:
    """The text of the first tokens, and their number: `limit` or a few less.

    A token may end inside a character, and without that character the rest may be two tokens.
    """
    kept = limit
    while True:
        try:
            text = tokenizer().decode(tokens[:kept])
        except ValueError:  # the end of a character is missing
            kept -= 1
            continue
        count = tokenizer().count(text)
        if count <= limit:
            return text, count
        kept -= count - limit


class Tokenizer(Protocol):
    def encode(self, text: str) -> list[int]: ...

    def decode(self, tokens: list[int]) -> str:
        """ValueError where they end inside a character."""

    def count(self, text: str) -> int: ...

    def count_till_limit(self, text: str, token_limit: int) -> int | None:
        """None where there are more tokens."""


def tokenizer() -> Tokenizer:
    """The tokenizer of OpenAI's embedding models, loaded once in a process."""
    with _loading:
        return _load()


@cache
def _load() -> Tokenizer:
    """Loads only the compiled part of the package, which is complete by itself.

    The Python package around it first reads five vocabularies, a second and 70 MB per run, for an
    interface that is not used here.
    """
    package = importlib.util.find_spec("bpe_openai")
    assert package is not None, "bpe-openai is among the dependencies"
    assert package.origin is not None, "a package with files has one"
    folder = str(Path(package.origin).parent)
    spec = FileFinder(folder, (ExtensionFileLoader, EXTENSION_SUFFIXES)).find_spec("_bindings")
    assert spec is not None, "the package has a compiled part"
    assert spec.loader is not None, "the finder has set it"
    bindings = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bindings)
    loaded: Tokenizer = bindings.tokenizer_for_encoding("cl100k_base")
    return loaded
