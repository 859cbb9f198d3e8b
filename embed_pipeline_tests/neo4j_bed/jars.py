"""The servers' jars: fetched once, kept per user, shared by all checkouts."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from embed_pipeline_tests.neo4j_bed.releases import BedUnavailable, Spec

ATTEMPTS = 3
"""A dropped connection ends jgo; what it has fetched by then is kept."""

TIMEOUT = 30
"""Seconds for one answer of the repository."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Jars:
    server: tuple[Path, ...]
    plugins: tuple[Path, ...]

    def __iter__(self) -> Iterator[Path]:
        # The server's come first: APOC carries an older copy of a library that both use.
        yield from (*self.server, *self.plugins)


def cache_folder() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "embed_pipeline" / "neo4j"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Alone among all processes of this machine that ask for the same path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def jars_for(spec: Spec) -> Jars:
    """From the cache, else fetched into it: minutes, once."""
    server = _cached(spec.release.coordinates, "jars")
    coordinates = spec.release.apoc_coordinates if spec.apoc else None
    plugins = _cached(coordinates, "path") if coordinates else ()
    return Jars(server=server, plugins=plugins)


def _cached(coordinates: str, question: str) -> tuple[Path, ...]:
    """What jgo answered, noted down: asking it again costs a second and may ask the network.

    A folder for each, because two that are fetched at once must not write the same files.
    """
    folder = cache_folder() / coordinates.replace(":", "_")
    note = folder / "jars.json"
    with locked(folder / "lock"):
        if note.exists():
            known = tuple(folder / line for line in json.loads(note.read_text()))
            if all(jar.exists() for jar in known):
                return known
        found = _ask_jgo(folder, coordinates, question)
        # Relative, so that the cache may be moved.
        lines = [os.path.relpath(jar, folder) for jar in found]
        unfinished = note.with_suffix(".new")
        unfinished.write_text(json.dumps(lines, indent=1))
        unfinished.replace(note)
    return found


def _ask_jgo(folder: Path, coordinates: str, question: str) -> tuple[Path, ...]:
    jgo = shutil.which("jgo", path=sysconfig.get_path("scripts")) or shutil.which("jgo")
    if jgo is None:
        raise BedUnavailable("jgo is not installed; it is one of the development packages")
    sys.stderr.write(f"Fetching {coordinates} into {folder}, once …\n")
    command = [
        *(jgo, "--resolver", "python", "--timeout", str(TIMEOUT), "--color", "plain"),
        *("--cache-dir", str(folder / "jgo"), "--repo-cache", str(folder / "repository")),
        *("info", question, coordinates),
    ]
    for _ in range(ATTEMPTS):
        # In a folder without a jgo.toml, which would be taken for the question.
        answer = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        found = tuple(Path(line) for line in answer.stdout.split() if line.endswith(".jar"))
        if answer.returncode == 0 and found and all(jar.exists() for jar in found):
            return found
    last = (answer.stderr.strip().splitlines() or ["no answer"])[-1].strip()
    raise BedUnavailable(f"{coordinates} cannot be fetched: {last}")
