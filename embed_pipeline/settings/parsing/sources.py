"""Reads the environment, `.env` and files with secrets, and notices misspelt names."""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection, Iterable, Mapping, Set
from pathlib import Path

from dotenv import dotenv_values

from embed_pipeline.errors import ConfigurationError
from embed_pipeline.settings.parsing.variables import Findings

OUR_PREFIXES = ("EMBED_", "EMBEDDING_")
FILE_SUFFIX = "_FILE"
"""Of the variable that names a file with a secret."""


def read_environment(dotenv: Path | None, known: Set[str], findings: Findings) -> dict[str, str]:
    """The process environment, and what only the file sets.

    Dagster's commands load `.env` over the environment of what they start. Elsewhere the
    environment wins, so a difference is noted.
    """
    in_file = _file_variables(dotenv)
    in_process = dict(os.environ)
    for name in sorted(known & in_file.keys() & in_process.keys()):
        if in_file[name] != in_process[name]:
            findings.note(
                f"{name} differs between the environment and {dotenv}: the environment wins."
            )
    return in_file | in_process


def with_secret_files(
    environ: Mapping[str, str], secrets: Collection[str], findings: Findings
) -> dict[str, str]:
    """The variables, with each secret of a `…_FILE` under the secret's own name."""
    complete = dict(environ)
    for secret in secrets:
        variable = secret + FILE_SUFFIX
        path = environ.get(variable, "").strip()
        if not path:
            continue
        if environ.get(secret):
            findings.refuse(variable, f"not be set beside {secret}")
        elif (text := _secret_in(Path(path), variable, findings)) is not None:
            complete[secret] = text
        else:
            findings.hide(secret)
    return complete


def note_unknown_names(names: Iterable[str], known: Set[str], findings: Findings) -> None:
    for name in sorted(names):
        if name in known or not name.upper().startswith(OUR_PREFIXES):
            continue
        close = difflib.get_close_matches(name.upper(), known, n=1, cutoff=0.75)
        hint = f"did you mean {close[0]}?" if close else "it is ignored."
        findings.note(f"{name} is not a setting: {hint}")


def _secret_in(path: Path, variable: str, findings: Findings) -> str | None:
    """Without one line end, which editors and `echo` append."""
    try:
        text = path.expanduser().read_text(encoding="utf-8")
    except (OSError, RuntimeError, UnicodeDecodeError) as error:
        findings.refuse(variable, f"name a file that can be read: {_reason(error)}")
        return None
    text = text.removesuffix("\n").removesuffix("\r")
    if not text.strip():
        findings.refuse(variable, "name a file that is not empty")
        return None
    return text


def _file_variables(dotenv: Path | None) -> dict[str, str]:
    """Without the names that the file mentions but gives no value."""
    if dotenv is None or not dotenv.is_file():
        return {}
    try:
        found = dotenv_values(dotenv, encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError([f"{dotenv} cannot be read: {_reason(error)}."]) from None
    return {name: value for name, value in found.items() if value is not None}


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return "it is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else str(error)
