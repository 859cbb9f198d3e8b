"""The command that tells Prometheus."""

from __future__ import annotations

import signal
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Annotated

import typer

from embed_pipeline.interfaces.cli import session
from embed_pipeline.interfaces.metrics import Reader, as_text, registry_of, serving
from embed_pipeline.interfaces.metrics.reading import COUNTS_EVERY
from embed_pipeline.telemetry import redact

PORT = 9464
"""Where exporters of this kind are looked for."""

ENDINGS = (signal.SIGINT, signal.SIGTERM)


def metrics(
    serve: Annotated[bool, typer.Option("--serve", help="Answer scrapes until Ctrl-C.")] = False,
    host: Annotated[
        str, typer.Option(help="With --serve: the address to listen at; loopback unless told.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="With --serve: the port; 0 for any free one.")
    ] = PORT,
    counts_every: Annotated[
        int,
        typer.Option(
            min=0,
            max=86_400,
            metavar="SECONDS",
            help="With --serve: how old exact counts may be; each costs a scan.",
        ),
    ] = int(COUNTS_EVERY.total_seconds()),
) -> None:
    """Counters and gauges in Prometheus' text format, once or for every scrape.

    A database that does not answer is a metric too: embed_pipeline_up is 0 then, and the reason
    is on stderr.

    Example: `embed-pipeline metrics --serve`
    """
    with session.services() as (services, settings):
        reader = Reader(
            services, counts_every=timedelta(seconds=counts_every), on_problem=_complain
        )
        registry = registry_of(reader, with_reaper=settings.reaper is not None)
        if not serve:
            typer.echo(as_text(registry), nl=False)
            return
        with _held_back(ENDINGS), serving(registry, host=host, port=port) as address:
            typer.echo(f"Metrics at {address}; Ctrl-C ends it.")
            signal.sigwait(ENDINGS)
        typer.echo("Stopped.")


@contextmanager
def _held_back(signals: Collection[signal.Signals]) -> Iterator[None]:
    """Blocked before the server's threads start, so that none of them takes the signal."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _complain(problem: str) -> None:
    sys.stderr.write(redact(problem) + "\n")


def add_to(app: typer.Typer) -> None:
    app.command()(metrics)
