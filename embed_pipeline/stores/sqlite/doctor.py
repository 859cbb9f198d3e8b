"""What the doctor looks at: the two files, their schema, whether they can be written."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

from embed_pipeline.domain.check import CheckResult, note, ok, problem
from embed_pipeline.errors import EmbedPipelineError


def diagnose_file(part: str, path: Path, look: Callable[[], object]) -> CheckResult:
    """`look` opens the file, which makes it where it is missing: so it is asked only of one."""
    if not path.exists():
        return note(part, f"{path} is not there yet: the first use makes it.")
    if not os.access(path, os.W_OK):
        return problem(part, f"{path} may not be written.", "Give this user the right to write it.")
    try:
        look()
    except EmbedPipelineError as error:
        return problem(part, str(error), "Mend or move the file; `embed-pipeline init` makes one.")
    size = path.stat().st_size / 1024 / 1024
    return ok(part, f"{path} ({size:,.1f} MiB, SQLite {sqlite3.sqlite_version})")
