"""A YAML file as values that know their line, so that a sentence can name it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from embed_pipeline.settings.parsing.variables import Findings

LARGEST = 1024 * 1024
"""Bytes of a file; a list of collections is a few kilobytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A scalar, a list or a mapping of a file; what does not fit is reported once."""

    node: Any
    file: str
    findings: Findings

    @property
    def line(self) -> int:
        return int(self.node.start_mark.line) + 1

    def refuse(self, sentence: str) -> None:
        self.findings.refuse_line(self.file, self.line, sentence)

    def of(self, node: Any) -> Value:
        return Value(node=node, file=self.file, findings=self.findings)

    @property
    def is_mapping(self) -> bool:
        return isinstance(self.node, yaml.MappingNode)

    @property
    def is_list(self) -> bool:
        return isinstance(self.node, yaml.SequenceNode)

    def scalar(self) -> str | int | bool | float | None:
        """None for what is no scalar, and for null."""
        if not isinstance(self.node, yaml.ScalarNode):
            return None
        value = self.plain()
        return value if isinstance(value, str | int | bool | float) else None

    def plain(self) -> object:
        """Everything below, as Python has it."""
        return yaml.SafeLoader("").construct_document(self.node)

    def items(self, what: str) -> Iterator[Value]:
        if not self.is_list:
            self.refuse(f"{what} must be a list")
            return
        for node in self.node.value:
            yield self.of(node)

    def fields(self, what: str, known: Mapping[str, object]) -> dict[str, Value]:
        """Of a mapping; unknown and repeated keys are refused."""
        if not self.is_mapping:
            self.refuse(f"{what} must be a mapping with some of {', '.join(known)}")
            return {}
        found: dict[str, Value] = {}
        for key, node in self.node.value:
            name = self.of(key).scalar()
            if not isinstance(name, str) or name not in known:
                self.of(key).refuse(f"{what} has no key {name!r}; there are {', '.join(known)}")
            elif name in found:
                self.of(key).refuse(f"{name} is there twice")
            else:
                found[name] = self.of(node)
        return found


def read_yaml(path: Path, variable: str, findings: Findings) -> Value | None:
    """The file's only document; None if it cannot be read, which is reported."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        findings.refuse(variable, f"name a file that can be read, got {str(path)!r}: {reason}")
        return None
    if len(content) > LARGEST:
        findings.refuse(variable, f"name a file of at most {LARGEST:,} bytes")
        return None
    try:
        node = yaml.compose(content.decode(), Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = int(mark.line) + 1 if mark else 1
        findings.refuse_line(path.name, line, f"this is no YAML ({error.problem})")
        return None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError):
        findings.refuse(variable, "name a file of YAML in UTF-8")
        return None
    if node is None:
        findings.refuse_line(path.name, 1, "the file is empty")
        return None
    return Value(node=node, file=path.name, findings=findings)
