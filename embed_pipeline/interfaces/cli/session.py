"""What a command opens: the settings, the logs and the stores, which it closes again."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager

from embed_pipeline import telemetry, wiring
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.settings import Settings, load_settings
from embed_pipeline.settings.groups.general import UNSET_ENVIRONMENT
from embed_pipeline.worker.context import Services


def settings(over: Mapping[str, str] | None = None, *, show_notes: bool = True) -> Settings:
    """`over` replaces single variables, as options of a command do."""
    loaded = load_settings(over=over)
    # At a terminal the command's own answer is enough; INFO lines are for log collectors.
    quiet = sys.stderr.isatty() and loaded.logging.level == "INFO"
    telemetry.configure("WARNING" if quiet else loaded.logging.level, loaded.logging.format)
    for note in loaded.notes if show_notes else ():
        # Not a problem, and the same for every command: `doctor` says it.
        if note != UNSET_ENVIRONMENT:
            sys.stderr.write(note + "\n")
    return loaded


def worker_id() -> str:
    """What other workers see of this process."""
    return f"cli-{socket.gethostname()}-{os.getpid()}"


@contextmanager
def job_store() -> Iterator[tuple[JobStore, Settings]]:
    loaded = settings()
    with closing(wiring.open_job_store(loaded)) as store:
        yield store, loaded


@contextmanager
def services() -> Iterator[tuple[Services, Settings]]:
    loaded = settings()
    with closing(wiring.open_services(loaded)) as opened:
        yield opened, loaded
