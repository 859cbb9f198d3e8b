"""Where the program runs, where it keeps local data, and how it logs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pydantic import SecretStr

from embed_pipeline.settings.parsing.kinds import FOLDER, TOKEN, one_of, pattern
from embed_pipeline.settings.parsing.variables import Findings, parse, setting

NAME = pattern(
    "up to 40 lower-case letters, digits and underscores that start with a letter",
    r"(?:[a-z][a-z0-9_]{0,39})?",
)


class Environment(StrEnum):
    LOCAL = "local"
    TEST = "test"
    PRODUCTION = "production"


class LogLevel(StrEnum):
    DEBUG = "DEBUG"
    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"


class LogFormat(StrEnum):
    AUTO = "auto"
    JSON = "json"
    TEXT = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneralSettings:
    environment: Environment = setting(
        "EMBED_ENV",
        one_of(Environment),
        "Which defaults apply: local = SQLite and the offline model, test = SQLite and the mock, "
        "production = Neo4j and OpenAI with nothing defaulted that could hurt.",
        default="local",
    )
    name: str | None = setting(
        "EMBED_NAME",
        NAME,
        "The prefix of jobs, assets, resources, sensors, schedules and lanes in Dagster, for "
        "several pipelines in one code location or one instance.",
        shown="none",
    )
    home: Path = setting(
        "EMBED_HOME",
        FOLDER,
        "Where local data is kept (the SQLite files).",
        default=".embed_pipeline",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    level: LogLevel = setting(
        "EMBED_LOG_LEVEL",
        one_of(LogLevel),
        "The least severe events that are logged.",
        default="INFO",
    )
    format: LogFormat = setting(
        "EMBED_LOG_FORMAT",
        one_of(LogFormat),
        "The format of log lines; auto is text on a terminal, and JSON elsewhere and in Dagster.",
        default="auto",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class McpSettings:
    token: SecretStr | None = setting(
        "EMBED_MCP_TOKEN",
        TOKEN,
        "What clients of MCP over HTTP must send as their bearer token.",
    )


UNSET_ENVIRONMENT = "EMBED_ENV is not set: using local (by default SQLite and the offline model)."


def general_settings(environ: Mapping[str, str], findings: Findings) -> GeneralSettings:
    if "EMBED_ENV" not in environ:
        findings.note(UNSET_ENVIRONMENT)
    return parse(GeneralSettings, environ, findings)
