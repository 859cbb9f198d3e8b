"""What the worker logs, as the host of the standard logger receives it."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from embed_pipeline import telemetry
from embed_pipeline.telemetry.rendering import as_json


class Logbook(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.entries: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.entries.append(json.loads(record.getMessage()))

    def of(self, event: str) -> list[dict[str, Any]]:
        return [entry for entry in self.entries if entry["event"] == event]

    @property
    def events(self) -> list[str]:
        return [entry["event"] for entry in self.entries]


@contextmanager
def recording() -> Iterator[Logbook]:
    logger, logbook = logging.getLogger(telemetry.LOGGER_NAME), Logbook()
    level, render = logger.level, telemetry._render
    telemetry._render = as_json
    logger.addHandler(logbook)
    logger.setLevel(logging.DEBUG)
    try:
        yield logbook
    finally:
        logger.removeHandler(logbook)
        logger.setLevel(level)
        telemetry._render = render
