"""The queues of one revision, each in a process of its own that runs the code of its checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.queue.contestant import Contestant, Worked

HERE = Path(__file__).resolve()
ROOT = HERE.parents[2]
TITLES = {"sqlite": "SQLite", "neo4j": "Neo4j", "postgres": "PostgreSQL"}
SERVED = HERE.with_name("served.py")


@contextmanager
def checkout(reference: str) -> Iterator[Path]:
    """A worktree of the revision, removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="revision-") as folder:
        tree = str(Path(folder) / "tree")
        _git("worktree", "add", "--quiet", "--detach", tree, reference)
        try:
            yield Path(tree)
        finally:
            _git("worktree", "remove", "--force", tree)


def _git(*command: str) -> None:
    subprocess.run(["git", "-C", str(ROOT), *command], check=True)


class Served(Contestant):
    """A queue of our own in another process; every verb is a line of JSON there and back."""

    def __init__(self, queue: str, tree: Path, *, name: str) -> None:
        self.name = name
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(SERVED), queue],
            cwd=tree,
            env=os.environ | {"PYTHONPATH": str(tree)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def started(self) -> bool:
        """Whether the revision has this queue at all."""
        return bool(self._answer())

    def enqueue(self, count: int) -> None:
        self._call("enqueue", count)

    def work(self, *, jobs: int, batch: int, seconds: float) -> Worked:
        jobs_done, took, leases = self._call("work", jobs, batch, seconds)
        return Worked(jobs_done, took, leases)

    def abandon(self, count: int) -> None:
        self._call("abandon", count)

    def recover(self, count: int) -> None:
        self._call("recover", count)

    def settle(self, count: int) -> None:
        self._call("settle", count)

    def cleanup(self) -> int | None:
        deleted: int | None = self._call("cleanup")
        return deleted

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()

    def _call(self, verb: str, *arguments: float) -> Any:
        assert self._process.stdin
        self._process.stdin.write(json.dumps([verb, *arguments]) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name} ended with status {self._process.wait()}.")
        return json.loads(line)


def twins(queues: Sequence[str], tree: Path, reference: str) -> Iterator[tuple[Served, Served]]:
    """Each queue as it is now and at the revision, for those that both have."""
    for queue in queues:
        title = TITLES[queue]
        both = (
            Served(queue, ROOT, name=title),
            Served(queue, tree, name=f"{title} {reference}"),
        )
        started = [one.started() for one in both]
        if all(started):
            yield both
        else:
            for one in both:
                one.close()
            sys.stderr.write(f"{title} is not compared: one of the two does not have it.\n")
