"""The command line, as a program of its own and, quicker, inside the test's process."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCRIPT = Path(sys.executable).with_name("embed-pipeline")
OURS = ("EMBED_", "EMBEDDING_", "OPENAI_", "REAPER_", "DAGSTER_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Fails where anything but JSON is on stdout."""
        return json.loads(self.out)

    @property
    def sentences(self) -> list[str]:
        return self.err.splitlines()


def environment(home: Path, **more: str) -> dict[str, str]:
    """A test environment without any setting of whoever runs the tests."""
    foreign = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    quiet = {"EMBED_ENV": "test", "EMBED_HOME": str(home), "EMBED_LOG_LEVEL": "ERROR"}
    return foreign | quiet | {"COLUMNS": "200"} | more


def run_program(*words: str, env: Mapping[str, str], cwd: Path) -> Answer:
    ended = subprocess.run(
        [SCRIPT, *words], env=env, cwd=cwd, capture_output=True, text=True, timeout=60
    )
    return Answer(code=ended.returncode, out=ended.stdout, err=ended.stderr)


def run_at_terminal(*words: str, env: Mapping[str, str], cwd: Path) -> Answer:
    """As a person sees it: standard output is a terminal."""
    ours, theirs = pty.openpty()
    shown = b""
    with subprocess.Popen([SCRIPT, *words], env=env, cwd=cwd, stdout=theirs) as program:
        os.close(theirs)
        with suppress(OSError):  # so a terminal says that nobody is left to write to it
            while some := os.read(ours, 10_000):
                shown += some
    os.close(ours)
    return Answer(code=program.returncode, out=shown.decode(), err="")
