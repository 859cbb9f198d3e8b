"""Removes secrets from logs, events and stored errors."""

from __future__ import annotations

import json
import re
import threading
from urllib.parse import quote

MASK = "[redacted]"
SHORTEST_SECRET = 4
"""Hiding shorter ones would hide ordinary words and protect nothing."""

_NAMES = r"api[_-]?key|passw(?:or)?d|pwd|secret(?:[_-]key)?|(?:access|auth|refresh)[_-]?token"
_SECRET_NAME = re.compile(rf"(?:{_NAMES}|authorization)$", re.IGNORECASE)
_MASKED = re.escape(MASK)
_PATTERNS = tuple(
    (re.compile(pattern, re.IGNORECASE), replacement)
    for pattern, replacement in (
        # Providers quote a refused key in their answer, partly masked or in full.
        (r"(api key provided:\s*)(?!" + _MASKED + r")\S*[^\s.,]", rf"\1{MASK}"),
        (r"(?<![a-z0-9])sk-[\w*.…-]{4,}[\w*]", MASK),
        (r"\b(bearer|basic)\s+[\w.~+/*-]+=*", rf"\1 {MASK}"),
        (r"://[^\s/?#]*@", f"://{MASK}@"),
        (
            rf"((?:{_NAMES})[\"']?\s*[=:]\s*)(?!{_MASKED})"
            r"(?:\"[^\"]*\"|'[^']*'|[^\s\"'&,;)}\]]+)",
            rf"\1{MASK}",
        ),
    )
)

_lock = threading.Lock()
_spellings: set[str] = set()
_registered: re.Pattern[str] | None = None


def register_secret(value: str) -> None:
    """From now on `redact` hides this value, also in quoted and escaped form."""
    global _registered
    if len(value) < SHORTEST_SECRET:
        return
    with _lock:
        _spellings.update(
            (
                value,
                quote(value, safe="", errors="surrogatepass"),
                repr(value)[1:-1],
                json.dumps(value)[1:-1],
            )
        )
        # The longest first: a secret that contains another one must be hidden as a whole.
        longest_first = sorted(_spellings, key=len, reverse=True)
        # Readers take no lock: they see either the old pattern or the new one.
        _registered = re.compile("|".join(map(re.escape, longest_first)))


def redact(text: str) -> str:
    """The text without registered secrets and without anything that looks like one."""
    registered = _registered
    if registered is not None:
        text = registered.sub(MASK, text)
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return text


def names_a_secret(name: str) -> bool:
    """Whether a value of this name must be hidden whatever it looks like."""
    return _SECRET_NAME.search(name) is not None
