"""MCP over HTTP (streamable): for clients on other machines, or several at once.

Every request carries the token. Host and Origin are checked too, by the SDK: a page in a browser
must not reach the server through a name that leads to this machine.
"""

from __future__ import annotations

import signal
import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server import Server
from mcp.server.transport_security import RequestBodyLimitMiddleware, TransportSecuritySettings

from embed_pipeline.errors import RequestError
from embed_pipeline.interfaces.mcp.guards import IdCheck, TokenCheck
from embed_pipeline.settings import endpoint_of

PATH = "/mcp"
MOST_BYTES = 4 * 1024 * 1024
"""Of one request's body."""
MOST_CONNECTIONS = 100
GRACE = 20
"""Seconds that running calls get when the server is told to end."""
RATE = 600
"""Requests per minute."""

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    host: str
    port: int
    """0: any free one."""
    hosts: tuple[str, ...]
    """The names by which clients may call the server."""
    is_local: bool
    """It listens on this machine's loopback address only."""
    tls: tuple[Path, Path] | None = None
    """The certificate's file and its key's."""
    rate: int = RATE

    @property
    def address(self) -> str:
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{shown}:{self.port}{PATH}"

    @property
    def security(self) -> TransportSecuritySettings:
        schemes = ("http", "https") if self.is_local else ("https",)
        return TransportSecuritySettings(
            allowed_hosts=_with_any_port(self.hosts),
            allowed_origins=_with_any_port(
                [f"{scheme}://{host}" for scheme in schemes for host in self.hosts]
            ),
        )


def http_options(
    address: str,
    *,
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
    behind_proxy: bool = False,
    hosts: Sequence[str] = (),
    rate: int = RATE,
) -> HttpOptions:
    """Raises RequestError for what would expose the token or the graph."""
    endpoint = endpoint_of(f"http://{address}")
    if endpoint is None or endpoint.port is None or endpoint.path or endpoint.has_query:
        raise RequestError(f"--http must be HOST:PORT, such as 127.0.0.1:8321, got {address!r}.")
    if not (endpoint.is_loopback or tls_cert or behind_proxy):
        raise RequestError(
            f"{endpoint.host} can be reached by other machines, and the token would travel "
            "unencrypted: give --tls-cert and --tls-key, or --behind-proxy if a proxy on the way "
            "encrypts, or listen at 127.0.0.1."
        )
    own = _LOOPBACK if endpoint.is_loopback else ()
    named = tuple(name.lower() for name in hosts)
    if not (own or named):
        raise RequestError(
            "Name each host by which clients call the server: --allow-host mcp.example.org."
        )
    return HttpOptions(
        host=endpoint.host,
        port=endpoint.port,
        hosts=(*own, *named),
        is_local=endpoint.is_loopback,
        tls=_checked_tls(tls_cert, tls_key),
        rate=rate,
    )


def serve_http(
    server: Server[Any], options: HttpOptions, *, token: str, listening: Callable[[str], None]
) -> None:
    """Until Ctrl-C or SIGTERM; running calls are answered. `listening` gets the address."""
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        # Nothing is kept between requests, so a restart or a second server goes unnoticed.
        stateless_http=True,
        json_response=True,
        max_request_body_size=MOST_BYTES,
        transport_security=options.security,
    )
    config = uvicorn.Config(
        TokenCheck(
            RequestBodyLimitMiddleware(IdCheck(app), MOST_BYTES), token=token, rate=options.rate
        ),
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        limit_concurrency=MOST_CONNECTIONS,
        timeout_graceful_shutdown=GRACE,
        ssl_certfile=options.tls[0] if options.tls else None,
        ssl_keyfile=options.tls[1] if options.tls else None,
    )
    running = _Uvicorn(config)
    for number in (signal.SIGINT, signal.SIGTERM):
        # For a signal before uvicorn's own handlers are set, and for the one that it raises again
        # after a clean end.
        signal.signal(number, lambda *_: running.end())
    with _bound(options) as bound:
        listening(replace(options, port=bound.getsockname()[1]).address)
        running.run(sockets=[bound])


class _Uvicorn(uvicorn.Server):
    """Waits for running calls at its end, but not for idle clients: with TLS they take long."""

    def end(self) -> None:
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.force_exit = not self.server_state.tasks
        await super().shutdown(sockets)
        if self.force_exit:
            await self.lifespan.shutdown()


def _bound(options: HttpOptions) -> socket.socket:
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    try:
        return socket.create_server((options.host, options.port), family=family, backlog=128)
    except OSError as error:
        raise RequestError(
            f"Cannot listen at {options.host}:{options.port}: {error.strerror or error}."
        ) from error


def _checked_tls(cert: Path | None, key: Path | None) -> tuple[Path, Path] | None:
    if cert is None and key is None:
        return None
    if cert is None or key is None:
        raise RequestError("--tls-cert and --tls-key are needed together.")
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(cert, key)
    except (OSError, ssl.SSLError) as error:
        raise RequestError(f"The TLS files cannot be used: {error}.") from error
    return cert, key


def _with_any_port(names: Sequence[str]) -> list[str]:
    return [form for name in names for form in (name, f"{name}:*")]
