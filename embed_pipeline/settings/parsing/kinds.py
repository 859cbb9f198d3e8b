"""The kinds of value that a variable can hold: each checks a text and says what it allows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Generic, Literal, TypeVar

from pydantic import SecretStr

T_co = TypeVar("T_co", covariant=True)
E = TypeVar("E", bound=StrEnum)

DAY_MS, DAY_SEC = 86_400_000, 86_400

_WHOLE = re.compile(r"-?[0-9]{1,18}")
_DECIMAL = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_FLAGS = dict.fromkeys(("true", "yes", "on", "1"), True) | dict.fromkeys(
    ("false", "no", "off", "0"), False
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind(Generic[T_co]):
    """`allowed` completes both "VARIABLE must be …" and the table in the documentation."""

    allowed: str
    parse: Callable[[str], T_co]
    """The value, or ValueError; the message of the error is not used."""
    secret: bool = False
    echo: bool = True
    """False where the text may contain a secret and is not repeated in an error sentence."""


def whole(unit: str, low: int, high: int, *, zero: str = "") -> Kind[int]:
    """`zero` says what 0 means, where it is allowed beside the range."""

    def parse(text: str) -> int:
        # int() also takes "1_000" and the digits of other scripts.
        number = int(_matched(_WHOLE, text))
        if low <= number <= high or (zero and number == 0):
            return number
        raise ValueError

    numbers = f"a whole number of {unit} from {low} to {high}"
    return Kind(allowed=f"0 ({zero}) or {numbers}" if zero else numbers, parse=parse)


def duration(
    unit: Literal["milliseconds", "seconds", "days"], low: int, high: int, *, zero: str = ""
) -> Kind[timedelta]:
    number = whole(unit, low, high, zero=zero)
    return Kind(allowed=number.allowed, parse=lambda text: timedelta(**{unit: number.parse(text)}))


def decimal(low: float, high: float) -> Kind[float]:
    def parse(text: str) -> float:
        # float() also takes "1_0", "nan", "1e3" and the digits of other scripts.
        number = float(_matched(_DECIMAL, text))
        if not low <= number <= high:
            raise ValueError
        return number

    return Kind(allowed=f"a number from {low:g} to {high:g}", parse=parse)


def one_of(names: Iterable[E]) -> Kind[E]:
    by_lower_case = {name.value.lower(): name for name in names}

    def parse(text: str) -> E:
        found = by_lower_case.get(text.strip().lower())
        if found is None:
            raise ValueError
        return found

    return Kind(allowed=listed([name.value for name in by_lower_case.values()]), parse=parse)


def pattern(allowed: str, regex: str) -> Kind[str]:
    compiled = re.compile(regex)
    return Kind(allowed=allowed, parse=lambda text: _matched(compiled, text))


def address(allowed: str) -> Kind[str | None]:
    """A URI; empty means unset. The group checks it, because that depends on other variables."""
    return Kind(allowed=allowed, parse=lambda text: text.strip() or None, echo=False)


def secret(allowed: str, *, strip: bool = True, regex: str = r"[\s\S]*") -> Kind[SecretStr | None]:
    """Empty means unset."""

    def parse(text: str) -> SecretStr | None:
        value = text.strip() if strip else text
        if not re.fullmatch(regex, value):
            raise ValueError
        return SecretStr(value) if value else None

    return Kind(allowed=allowed, parse=parse, secret=True, echo=False)


def listed(words: Iterable[str]) -> str:
    """`a, b or c`."""
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


def _matched(regex: re.Pattern[str], text: str) -> str:
    if not regex.fullmatch(text.strip()):
        raise ValueError
    return text.strip()


def _flag(text: str) -> bool:
    found = _FLAGS.get(text.strip().lower())
    if found is None:
        raise ValueError
    return found


def _folder(text: str) -> Path:
    if not text.strip():
        raise ValueError
    try:
        return Path(text).expanduser()
    except RuntimeError:  # "~" before the name of a user who does not exist
        raise ValueError from None


def _identifier(text: str) -> str:
    name = _matched(_IDENTIFIER, text)
    plain = name.lower().replace("_", "")
    if plain.startswith("embedding") or plain == "needsembedding":
        raise ValueError
    return name


def _identifiers(text: str) -> tuple[str, ...]:
    names = tuple(_identifier(item) for item in text.split(","))
    # Column names of SQLite are not case-sensitive.
    if len({name.lower() for name in names}) < len(names):
        raise ValueError
    return names


FLAG = Kind(allowed="true or false", parse=_flag)
FOLDER = Kind(allowed="the path of a folder", parse=_folder)
FILE = Kind(allowed="the path of a file", parse=_folder)
IDENTIFIER = Kind(
    allowed="a name of up to 64 letters, digits and underscores that does not start with a digit"
    " and is not needs_embedding or anything that begins with embedding",
    parse=_identifier,
)
"""A label or property name of the graph that is not one of ours."""
IDENTIFIERS = Kind(
    allowed=f"a comma-separated list without repetition, each item {IDENTIFIER.allowed}",
    parse=_identifiers,
)
PASSWORD = secret("any text", strip=False)
API_KEY = secret("printable ASCII without spaces", regex="[!-~]*")
"""Sent in an HTTP header, which cannot hold spaces or line ends."""
TOKEN = secret("at least 16 characters of printable ASCII without spaces", regex="([!-~]{16,})?")
