"""What the doctor checks: the two files, their schema, whether they can be written."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

from embed_pipeline.domain.check import CheckResult, note, ok, problem
from embed_pipeline.errors import EmbedPipelineError
from embed_pipeline.stores.sqlite.files import network_filesystem


def diagnose_file(part: str, path: Path, read: Callable[[], object]) -> CheckResult:
    """`read` opens the file and would make a missing one, so it is called only if there is one."""
    if not path.exists():
        return note(part, f"{path} is not there yet: the first use creates it.")
    if not os.access(path, os.W_OK):
        return problem(part, f"{path} may not be written.", "Give this user the right to write it.")
    try:
        read()
    except EmbedPipelineError as error:
        return problem(part, str(error), "Fix or move the file; `embed-pipeline init` makes one.")
    size = path.stat().st_size / 1024 / 1024
    return ok(part, f"{path} ({size:,.1f} MiB, SQLite {sqlite3.sqlite_version})")


def diagnose_folder(home: Path) -> list[CheckResult]:
    """Nothing, unless the files are on a network mount."""
    filesystem = network_filesystem(home)
    if filesystem is None:
        return []
    return [
        note(
            "files",
            f"{home} is on a network mount ({filesystem}): SQLite files serve one machine only.",
            "Set EMBED_HOME to a local disk; several machines share a queue on PostgreSQL or Neo4j"
            " (EMBED_QUEUE_STORE).",
        )
    ]
