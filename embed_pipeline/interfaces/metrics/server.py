"""The metrics as text, once or for every scrape."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, generate_latest, start_http_server

from embed_pipeline.errors import RequestError


def as_text(registry: CollectorRegistry) -> str:
    return generate_latest(registry).decode()


@contextmanager
def serving(registry: CollectorRegistry, *, host: str, port: int) -> Iterator[str]:
    """Answers scrapes in threads of its own for the length of the block; yields its address.

    Port 0 is any free one.
    """
    try:
        server, thread = start_http_server(port, addr=host, registry=registry)
    except OSError as error:
        raise RequestError(f"Cannot listen at {host}:{port}: {error.strerror}.") from error
    try:
        yield f"http://{host}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
