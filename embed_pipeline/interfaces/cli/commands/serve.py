"""Commands that serve: metrics for Prometheus, tools for agents."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from embed_pipeline.errors import package_missing
from embed_pipeline.interfaces.cli import session
from embed_pipeline.interfaces.metrics import COUNTS_EVERY, Reader, as_text, registry_of, serving
from embed_pipeline.telemetry import redact

PORT = 9464
"""The usual port of exporters of this kind."""

ENDINGS = (signal.SIGINT, signal.SIGTERM)


def metrics(
    serve: Annotated[bool, typer.Option("--serve", help="Answer scrapes until Ctrl-C.")] = False,
    host: Annotated[
        str, typer.Option(help="With --serve: the address to listen at.")
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
            help="With --serve: reuse exact counts for this long; each costs a scan.",
        ),
    ] = int(COUNTS_EVERY.total_seconds()),
) -> None:
    """Print counters and gauges in the Prometheus text format, or serve them to scrapes.

    If a database does not answer, embed_pipeline_up is 0 and the reason is on standard error.

    Example: `embed-pipeline metrics --serve`
    """
    with session.services() as (services, settings):
        reader = Reader(services, counts_every=timedelta(seconds=counts_every), on_problem=_report)
        registry = registry_of(reader, with_reaper=settings.reaper is not None)
        if not serve:
            typer.echo(as_text(registry), nl=False)
            return
        with _blocked(ENDINGS), serving(registry, host=host, port=port) as address:
            typer.echo(f"Metrics at {address}; Ctrl-C ends it.")
            _wait()
        typer.echo("Stopped.")


@contextmanager
def _blocked(signals: Collection[signal.Signals]) -> Iterator[None]:
    """Blocked before the server's threads start, so that none of them takes the signal."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _wait() -> None:
    if hasattr(signal, "sigwait"):
        signal.sigwait(ENDINGS)
        return
    with suppress(KeyboardInterrupt):  # Windows, where only a sleep is interrupted
        while True:
            time.sleep(3600)


def _report(problem: str) -> None:
    sys.stderr.write(redact(problem) + "\n")


Address = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Serve over HTTP at this address; port 0 for any."),
]
ReadOnly = Annotated[
    bool, typer.Option("--read-only", help="Offer only the tools that change nothing.")
]
TlsCert = Annotated[Path | None, typer.Option(help="With --http: the certificate's file (PEM).")]
TlsKey = Annotated[Path | None, typer.Option(help="With --http: its private key's file (PEM).")]
BehindProxy = Annotated[
    bool, typer.Option("--behind-proxy", help="With --http: a proxy encrypts what leaves here.")
]
AllowHost = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="With --http: a name by which clients call the server."),
]
Rate = Annotated[
    int, typer.Option(min=1, help="With --http: at most this many requests per minute.")
]


def mcp(
    http: Address = None,
    read_only: ReadOnly = False,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    behind_proxy: BehindProxy = False,
    allow_host: AllowHost = None,
    rate: Rate = 600,
) -> None:
    """Serve the tools for agents (Model Context Protocol) to the client that starts it, or by HTTP.

    Over HTTP every request needs the token of EMBED_MCP_TOKEN. Other machines reach it only with
    TLS or through a proxy.

    Example: `embed-pipeline mcp --http 127.0.0.1:8321`
    """
    try:
        from embed_pipeline.interfaces.mcp import http_options, serve
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "mcp":
            raise
        raise package_missing("The MCP server", "mcp", extra="mcp") from error
    options = None
    if http is not None:
        options = http_options(
            http,
            tls_cert=tls_cert,
            tls_key=tls_key,
            behind_proxy=behind_proxy,
            hosts=allow_host or (),
            rate=rate,
        )
    serve(http=options, read_only=read_only, listening=_say_where)
    if options is not None:
        typer.echo("Stopped.")


def _say_where(address: str) -> None:
    typer.echo(f"MCP at {address}; Ctrl-C ends it.")


COMMANDS = (metrics, mcp)
