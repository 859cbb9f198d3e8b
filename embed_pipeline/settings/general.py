"""Where the program runs, where it keeps local data, and how it logs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from embed_pipeline.settings.findings import Findings
from embed_pipeline.settings.kinds import Folder, OneOf
from embed_pipeline.settings.shape import Environment, LogFormat, LogLevel, LogSettings
from embed_pipeline.settings.variables import Variables, setting


class GeneralVariables(Variables):
    environment: Annotated[Environment, OneOf(Environment)] = setting(
        "EMBED_ENV",
        "Which defaults apply: local = SQLite and the offline model, test = SQLite and the mock, "
        "production = Neo4j and OpenAI with nothing defaulted that could hurt.",
        default=Environment.LOCAL,
    )
    home: Annotated[Path, Folder()] = setting(
        "EMBED_HOME",
        "Where local data is kept (the SQLite files).",
        default=Path(".embed_pipeline"),
    )


class LogVariables(Variables):
    level: Annotated[LogLevel, OneOf(LogLevel)] = setting(
        "EMBED_LOG_LEVEL", "The least severe events that are logged.", default=LogLevel.INFO
    )
    format: Annotated[LogFormat, OneOf(LogFormat)] = setting(
        "EMBED_LOG_FORMAT",
        "How log lines look; auto is text on a terminal, and JSON elsewhere and in Dagster.",
        default=LogFormat.AUTO,
    )


UNSET_ENVIRONMENT = "EMBED_ENV is not set: using local (by default SQLite and the offline model)."


def environment_of(given: GeneralVariables, findings: Findings) -> Environment:
    if "environment" not in given.model_fields_set and findings.sound("EMBED_ENV"):
        findings.note(UNSET_ENVIRONMENT)
    return given.environment


def log_settings(given: LogVariables) -> LogSettings:
    return LogSettings(level=given.level, format=given.format)
