"""What is wrong with the settings and what is worth saying, gathered so that all of it is told."""

from __future__ import annotations

from embed_pipeline.errors import ConfigurationError


class Findings:
    """One problem per variable, the first: what follows from a bad value is no news."""

    def __init__(self) -> None:
        self._problems: dict[str, str] = {}
        self._notes: list[str] = []

    def refuse(self, variable: str, must: str) -> None:
        """`must` completes the sentence "VARIABLE must …" and never repeats a secret."""
        self._problems.setdefault(variable, f"{variable} must {must}.")

    def note(self, sentence: str) -> None:
        self._notes.append(sentence)

    def sound(self, *variables: str) -> bool:
        """Whether rules that join these variables can be judged at all."""
        return not any(variable in self._problems for variable in variables)

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(self._notes)

    def raise_problems(self) -> None:
        if self._problems:
            raise ConfigurationError(list(self._problems.values()))
