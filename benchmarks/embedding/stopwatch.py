"""How long something took, and how much of the processors: our own and of all who served us."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SERVERS = "BENCHMARK_SERVERS"
"""Where the one who measures finds the process of each server: `name=number …`."""

OURSELVES = "client"

Measured = dict[str, float]


@contextmanager
def stopwatch(entities: int) -> Iterator[Measured]:
    """What it yields is filled in at the end."""
    measured: Measured = {"entities": entities}
    before, begun = _processor_seconds(), time.perf_counter()
    yield measured
    measured["seconds"] = time.perf_counter() - begun
    measured |= {name: now - before[name] for name, now in _processor_seconds().items()}


def _processor_seconds() -> Measured:
    servers = dict(pair.split("=") for pair in os.environ[SERVERS].split())
    used = {name: _used_by(process) for name, process in servers.items()}
    return used | {OURSELVES: time.process_time()}


def _used_by(process: str) -> float:
    """Its children that have ended are not counted."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
