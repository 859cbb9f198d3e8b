"""The formats of a log line: JSON for machines, text for a terminal, a sentence for Dagster."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, MutableMapping
from datetime import UTC, datetime
from typing import Any

from structlog.typing import WrappedLogger

from embed_pipeline.telemetry.events import EVENTS
from embed_pipeline.telemetry.facts import camel_case, plain_facts

RESERVED = frozenset({"event", "level", "timestamp"})


class _Gaps(dict[str, Any]):
    def __missing__(self, name: str) -> str:
        return "?"


def as_entry(
    _logger: WrappedLogger, _method: str, event_dict: MutableMapping[str, Any]
) -> Mapping[str, Any]:
    """The finished line as a mapping: event, level, message and time first, then the facts."""
    name = event_dict["event"]
    facts = plain_facts(event_dict["facts"])
    message = str(facts.pop("message", None) or _sentence(name, facts))
    return {
        "timestamp": _timestamp(event_dict["at"]),
        "level": logging.getLevelName(EVENTS[name].level).lower(),
        "event": name,
        "message": message,
    } | {_free_name(camel_case(fact)): value for fact, value in facts.items()}


def as_json(entry: Mapping[str, Any]) -> str:
    return json.dumps(entry, default=str)


def as_text(entry: Mapping[str, Any]) -> str:
    """One line, so that no value can look like another entry; a stack follows, indented."""
    facts = [f"{name}={json.dumps(value)}" for name, value in _facts_of(entry)]
    line = f"{entry['timestamp']} {entry['level'].upper():8} {entry['event']}: {_message_of(entry)}"
    return " ".join([line, *facts]) + _stack_of(entry)


def as_sentence(entry: Mapping[str, Any]) -> str:
    """For the log of a Dagster run, which shows time and level by itself; without empty facts."""
    facts = [
        f"{name}={json.dumps(value, ensure_ascii=False)}"
        for name, value in _facts_of(entry)
        if value not in (None, "", [], {})
    ]
    return f"{_message_of(entry)} ({' '.join([entry['event'], *facts])})" + _stack_of(entry)


def _facts_of(entry: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    head = ("timestamp", "level", "event", "message", "stack")
    return ((name, value) for name, value in entry.items() if name not in head)


def _message_of(entry: Mapping[str, Any]) -> str:
    return " ".join(entry["message"].splitlines())


def _stack_of(entry: Mapping[str, Any]) -> str:
    return "".join(f"\n    {row}" for row in str(entry.get("stack") or "").splitlines())


def _sentence(name: str, facts: Mapping[str, Any]) -> str:
    sentence = EVENTS[name].sentence.format_map(_Gaps(facts))
    # A quoted reason may be a sentence with its own full stop.
    return sentence[:-1] if sentence.endswith("..") else sentence


def _free_name(name: str) -> str:
    """A fact named like one of our own keys is renamed, so that both are kept."""
    return f"{name}_" if name in RESERVED else name


def _timestamp(seconds: float) -> str:
    at = datetime.fromtimestamp(seconds, UTC)
    return at.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
