"""What a command opens: settings said aloud, logs set up, stores closed again."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager

from embed_pipeline import telemetry, wiring
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.settings import Settings, load_settings
from embed_pipeline.worker.context import Services


def settings(over: Mapping[str, str] | None = None, *, say_notes: bool = True) -> Settings:
    """`over` replaces single variables, as options of a command do."""
    loaded = load_settings(over=over)
    # A person at a terminal reads the command's own answer; the story is for log collectors.
    quiet = sys.stderr.isatty() and loaded.logging.level == "INFO"
    telemetry.configure("WARNING" if quiet else loaded.logging.level, loaded.logging.format)
    for remark in loaded.notes if say_notes else ():
        sys.stderr.write(remark + "\n")
    return loaded


@contextmanager
def job_store() -> Iterator[tuple[JobStore, Settings]]:
    loaded = settings()
    with closing(wiring.open_job_store(loaded)) as store:
        yield store, loaded


@contextmanager
def services() -> Iterator[tuple[Services, Settings]]:
    loaded = settings()
    with opened_tools(loaded) as opened:
        yield opened, loaded


@contextmanager
def opened_tools(loaded: Settings) -> Iterator[Services]:
    opened = wiring.open_services(loaded)
    with ExitStack() as stack:
        for part in (opened.jobs, opened.graph, opened.provider, opened.limiter):
            stack.enter_context(closing(part))
        yield opened
