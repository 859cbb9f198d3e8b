"""The kinds of value a variable can hold: each checks a text and says what it allows.

`allowed` completes the sentence "VARIABLE must be …" and the table in the documentation, so the
rule that is told is the rule that is checked.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

_WHOLE = re.compile(r"-?[0-9]{1,18}")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_HEADER_SAFE = re.compile(r"[!-~]+")


class Kind(ABC):
    """Used as `Annotated[type, Kind(...)]`; pydantic hands it the text before the type."""

    secret: ClassVar[bool] = False
    echo: ClassVar[bool] = True
    """False where the text may carry a secret and must not be repeated in a sentence."""

    @property
    @abstractmethod
    def allowed(self) -> str: ...

    @abstractmethod
    def parse(self, text: str) -> object:
        """The value for pydantic, or ValueError; nobody reads the error's message."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.parse, handler(source))


@dataclass(frozen=True, slots=True)
class Whole(Kind):
    unit: str
    low: int
    high: int
    zero: str = ""
    """What 0 means, where it is allowed beside the range."""

    @property
    def allowed(self) -> str:
        numbers = f"a whole number of {self.unit} from {self.low} to {self.high}"
        return f"0 ({self.zero}) or {numbers}" if self.zero else numbers

    def parse(self, text: str) -> int:
        # int() and pydantic also take "1_000", "7.0" and other scripts' digits.
        if not _WHOLE.fullmatch(text.strip()):
            raise ValueError
        number = int(text)
        if self.low <= number <= self.high or (self.zero and number == 0):
            return number
        raise ValueError


@dataclass(frozen=True, slots=True)
class OneOf(Kind):
    names: Iterable[StrEnum]

    @property
    def allowed(self) -> str:
        return listed((name.value for name in self.names), "or")

    def parse(self, text: str) -> str:
        by_lower_case = {name.value.lower(): name.value for name in self.names}
        try:
            return by_lower_case[text.strip().lower()]
        except KeyError:
            raise ValueError from None


@dataclass(frozen=True, slots=True)
class Flag(Kind):
    @property
    def allowed(self) -> str:
        return "true or false"

    def parse(self, text: str) -> str:
        return text.strip()  # pydantic knows true, yes, on, 1 and their opposites


@dataclass(frozen=True, slots=True)
class Pattern(Kind):
    allowed_text: str
    pattern: str

    @property
    def allowed(self) -> str:
        return self.allowed_text

    def parse(self, text: str) -> str:
        if not re.fullmatch(self.pattern, text.strip()):
            raise ValueError
        return text.strip()


@dataclass(frozen=True, slots=True)
class Folder(Kind):
    @property
    def allowed(self) -> str:
        return "the path of a folder"

    def parse(self, text: str) -> Path:
        if not text.strip():
            raise ValueError
        try:
            return Path(text).expanduser()
        except RuntimeError:  # "~nobody"
            raise ValueError from None


@dataclass(frozen=True, slots=True)
class Identifier(Kind):
    """A label or property name of the graph that is not one of ours."""

    @property
    def allowed(self) -> str:
        return (
            "a name of up to 64 letters, digits and underscores that does not start with a digit"
            " and is not needs_embedding or anything that begins with embedding"
        )

    def parse(self, text: str) -> str:
        name = text.strip()
        if not _IDENTIFIER.fullmatch(name) or _is_ours(name):
            raise ValueError
        return name


@dataclass(frozen=True, slots=True)
class Identifiers(Kind):
    @property
    def allowed(self) -> str:
        return f"a comma-separated list without repetition, each item {Identifier().allowed}"

    def parse(self, text: str) -> tuple[str, ...]:
        names = tuple(Identifier().parse(item) for item in text.split(","))
        # SQLite's columns do not tell upper from lower case.
        if len({name.lower() for name in names}) < len(names):
            raise ValueError
        return names


@dataclass(frozen=True, slots=True)
class Address(Kind):
    """A URI; empty is unset. What it may be depends on other variables, so it is checked later."""

    echo: ClassVar[bool] = False
    allowed_text: str

    @property
    def allowed(self) -> str:
        return self.allowed_text

    def parse(self, text: str) -> str | None:
        return text.strip() or None


@dataclass(frozen=True, slots=True)
class Password(Kind):
    """Any text, kept as it is; empty is unset."""

    secret: ClassVar[bool] = True
    echo: ClassVar[bool] = False

    @property
    def allowed(self) -> str:
        return "any text"

    def parse(self, text: str) -> str | None:
        return text or None


@dataclass(frozen=True, slots=True)
class ApiKey(Kind):
    """Travels in an HTTP header, which takes no blanks or line ends; empty is unset."""

    secret: ClassVar[bool] = True
    echo: ClassVar[bool] = False

    @property
    def allowed(self) -> str:
        return "printable ASCII without spaces"

    def parse(self, text: str) -> str | None:
        key = text.strip()
        if key and not _HEADER_SAFE.fullmatch(key):
            raise ValueError
        return key or None


def listed(words: Iterable[str], conjunction: str) -> str:
    """`a, b or c`."""
    *most, last = words
    return f"{', '.join(most)} {conjunction} {last}" if most else last


def _is_ours(name: str) -> bool:
    plain = name.lower().replace("_", "")
    return plain.startswith("embedding") or plain == "needsembedding"
