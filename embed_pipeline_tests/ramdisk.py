"""Temporary files in memory, where the machine has a RAM disk with room.

Every commit of a database waits for its disk, and the tests commit some hundred thousand times.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

RAM_DISK = Path("/dev/shm")
ROOM = 4 << 30
PREFIX = "embed-pipeline-tests-"


def move_temporary_files() -> Path | None:
    """Let this process and its children put them there; the folder, to be removed at the end."""
    if "TMPDIR" in os.environ or not os.access(RAM_DISK, os.W_OK):
        return None
    _remove_leftovers()
    if shutil.disk_usage(RAM_DISK).free < ROOM:
        return None
    folder = RAM_DISK / f"{PREFIX}{os.getpid()}"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)  # started by root, PostgreSQL is another user
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    return folder


def _remove_leftovers() -> None:
    """Of test runs that were killed."""
    for folder in RAM_DISK.glob(f"{PREFIX}*"):
        if not Path("/proc", folder.name.removeprefix(PREFIX)).exists():
            shutil.rmtree(folder, ignore_errors=True)
