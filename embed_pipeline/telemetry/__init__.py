"""Structured logs: `emit` logs an event by its name, with facts.

Lines go through the standard logger "embed_pipeline" as finished text, so every handler that a
host installs (Dagster, a test) gets the same. Unless `configure` was called they are JSON and
follow the logging setup of the host.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import structlog
from structlog.typing import EventDict, WrappedLogger

from embed_pipeline.telemetry.events import EVENTS
from embed_pipeline.telemetry.redaction import redact, register_secret
from embed_pipeline.telemetry.rendering import as_entry, as_json, as_sentence, as_text

__all__ = [
    "LOGGER_NAME",
    "configure",
    "emit",
    "give_sentences_to_hosts",
    "redact",
    "register_secret",
]

LOGGER_NAME = "embed_pipeline"

Render = Callable[[Mapping[str, Any]], str]

_FORMATS: Mapping[str, Render] = {"json": as_json, "text": as_text}
_render: Render = as_json
"""For the handlers of a host program; stderr has its own."""


class _StderrHandler(logging.Handler):
    """Looks up stderr for each line, because test runners and CLIs replace it."""

    render: Render = staticmethod(as_json)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            entry = getattr(record, "entry", None)  # absent if another program uses our logger
            line = self.format(record) if entry is None else self.render(entry)
            sys.stderr.write(line + "\n")
        except Exception:  # the standard library's own rule for handlers
            self.handleError(record)


_HANDLER = _StderrHandler()


def emit(event: str, /, **facts: object) -> None:
    """Log one event of the table in `events`.

    Facts are given in snake_case and shown in camelCase; an exception as `error` becomes
    errorType, message and stack. Raises ValueError for a name that is not in the table, but
    never because of a fact.
    """
    kind = EVENTS.get(event)
    if kind is None:
        raise ValueError(f"{event!r} is not in the table of events")
    _log.log(kind.level, event, facts=facts, at=time.time())


def configure(level: str = "INFO", format: str = "auto") -> None:  # noqa: A002
    """Send lines to stderr; for entry points. Can be called again to change level and format.

    `auto` is text on a terminal and JSON elsewhere.
    """
    global _render
    if format == "auto":
        format = "text" if sys.stderr.isatty() else "json"  # noqa: A001
    _HANDLER.render = _render = _FORMATS[format]
    logger = logging.getLogger(LOGGER_NAME)
    logger.setLevel(level)
    logger.addHandler(_HANDLER)  # adding it twice changes nothing


def give_sentences_to_hosts() -> None:
    """For Dagster, whose log of a run is read by people. Lines on stderr keep their format."""
    global _render
    _render = as_sentence


def _rendered(
    _logger: WrappedLogger, _method: str, entry: EventDict
) -> tuple[tuple[str], dict[str, Any]]:
    return (_render(entry),), {"extra": {"entry": entry}}


# Wrapped by hand and not through structlog.configure, which belongs to the host program.
_log: structlog.stdlib.BoundLogger = structlog.wrap_logger(
    logging.getLogger(LOGGER_NAME),
    processors=[structlog.stdlib.filter_by_level, as_entry, _rendered],
    wrapper_class=structlog.stdlib.BoundLogger,
    context_class=dict,
)
