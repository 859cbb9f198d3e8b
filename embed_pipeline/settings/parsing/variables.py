"""How a variable is declared: once, as a field of its group, with everything there is to say.

Validation, docs/configuration.md and .env.example follow from the declaration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, overload

from embed_pipeline.errors import ConfigurationError
from embed_pipeline.settings.parsing.kinds import Kind
from embed_pipeline.telemetry.redaction import redact

T = TypeVar("T")
G = TypeVar("G")

_LONGEST_ECHO = 80


class Findings:
    """Problems and notes, collected so that all are reported at once.

    One problem per variable, the first: what follows from a bad value is not reported.
    """

    def __init__(self) -> None:
        self._problems: dict[str, str] = {}
        self._notes: list[str] = []
        self._hidden: set[str] = set()

    def refuse(self, variable: str, must: str) -> None:
        """`must` completes the sentence "VARIABLE must …" and never contains a secret."""
        if variable not in self._hidden:
            self._problems.setdefault(variable, f"{variable} must {must}.")

    def refuse_line(self, file: str, line: int, sentence: str) -> None:
        place = f"{file}, line {line}"
        self._problems.setdefault(f"{place}: {sentence}", f"{place}: {sentence}.")

    def require_encryption(
        self, variable: str, remedy: str, *, permission: str, allowed: bool, cargo: str
    ) -> None:
        """For an unencrypted address of another machine; `permission` is the variable."""
        if allowed:
            self.note(f"{permission} is true: {cargo} travel unencrypted to {variable}.")
        else:
            self.refuse(
                variable,
                f"{remedy} because its host is not loopback ({permission}=true allows plain text)",
            )

    def hide(self, variable: str) -> None:
        """Report no problem of this variable: it follows from one that is reported."""
        self._hidden.add(variable)

    def note(self, sentence: str) -> None:
        self._notes.append(sentence)

    def accepted(self, *variables: str) -> bool:
        """Whether rules that join these variables can be checked at all."""
        return not self._hidden.union(self._problems).intersection(variables)

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(self._notes)

    def raise_problems(self) -> None:
        if self._problems:
            raise ConfigurationError(list(self._problems.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """`default` is written as in a `.env` file; `shown` words one that depends on something."""

    variable: str
    kind: Kind[object]
    meaning: str
    default: str
    shown: str


@overload
def setting(variable: str, kind: Kind[T], meaning: str, *, default: str, shown: str = "") -> T: ...
@overload
def setting(variable: str, kind: Kind[object], meaning: str, *, shown: str = "") -> Any: ...
def setting(
    variable: str, kind: Kind[Any], meaning: str, *, default: str = "", shown: str = ""
) -> Any:
    """A field of a group that is a dataclass.

    Without a default the field is None where the variable is not set. If its type does not say
    so, the group completes it from other variables.
    """
    declared = Setting(variable=variable, kind=kind, meaning=meaning, default=default, shown=shown)
    value = kind.parse(default) if default else None
    return field(default=value, metadata={Setting: declared})


def settings_of(group: type) -> dict[str, Setting]:
    """The declared variables of a group, by the name of their field."""
    return {one.name: one.metadata[Setting] for one in fields(group) if Setting in one.metadata}


def parse(group: type[G], environ: Mapping[str, str], findings: Findings) -> G:
    """The group's values; a bad one is reported and replaced by its default to check the rest."""
    values: dict[str, object] = {}
    for name, declared in settings_of(group).items():
        text = environ.get(declared.variable)
        if text is None:
            continue
        try:
            values[name] = declared.kind.parse(text)
        except ValueError:
            got = f", got {_shortened(text)}" if declared.kind.echo else ""
            findings.refuse(declared.variable, f"be {declared.kind.allowed}{got}")
    return group(**values)


def _shortened(text: str) -> str:
    text = redact(text)  # a secret may have been put into the wrong variable
    return repr(text if len(text) <= _LONGEST_ECHO else text[:_LONGEST_ECHO] + "…")
