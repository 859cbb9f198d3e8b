"""Reads the environment and `.env`, and notices names that look like ours but are not."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Set
from pathlib import Path

from pydantic_settings import DotEnvSettingsSource, EnvSettingsSource

from embed_pipeline.errors import ConfigurationError
from embed_pipeline.settings.findings import Findings
from embed_pipeline.settings.variables import Variables

OUR_PREFIXES = ("EMBED_", "EMBEDDING_")


def read_environment(dotenv: Path | None, known: Set[str], findings: Findings) -> dict[str, str]:
    """The process environment, and what only the file sets.

    Dagster's commands put `.env` into the environment of what they start, over what is there;
    elsewhere the environment wins, so a difference is worth a note.
    """
    in_file = _present(_file_variables(dotenv))
    in_process = _present(EnvSettingsSource(Variables, case_sensitive=True).env_vars)
    for name in sorted(known & in_file.keys() & in_process.keys()):
        if in_file[name] != in_process[name]:
            findings.note(f"{name} differs between the environment and {dotenv}: the former wins.")
    return in_file | in_process


def note_unknown_names(names: Iterable[str], known: Set[str], findings: Findings) -> None:
    for name in sorted(names):
        if name in known or not name.upper().startswith(OUR_PREFIXES):
            continue
        close = difflib.get_close_matches(name.upper(), known, n=1, cutoff=0.75)
        hint = f"did you mean {close[0]}?" if close else "it is ignored."
        findings.note(f"{name} is not a setting: {hint}")


def _file_variables(dotenv: Path | None) -> Mapping[str, str | None]:
    try:
        return DotEnvSettingsSource(Variables, env_file=dotenv, case_sensitive=True).env_vars
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigurationError([f"{dotenv} cannot be read: {reason}."]) from None


def _present(variables: Mapping[str, str | None]) -> dict[str, str]:
    """Without the names that a `.env` file mentions but gives no value."""
    return {name: value for name, value in variables.items() if value is not None}
