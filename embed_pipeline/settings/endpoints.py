"""Where a URI leads, and whether what travels there can be read on the way."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    scheme: str
    host: str
    port: int | None
    path: str
    has_query: bool

    @property
    def is_loopback(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:  # a name, and a name may lead anywhere
            return False

    def server(self, default_port: int) -> tuple[str, int]:
        """Equal for two spellings of the usual loopback address."""
        host = "localhost" if self.host in ("127.0.0.1", "::1") else self.host
        return host, self.port or default_port


def carries_credentials(uri: str) -> bool:
    """Any "@" counts: an unescaped "/" in a password moves it out of the part before the host."""
    return "@" in uri


def endpoint_of(uri: str) -> Endpoint | None:
    """None when the text is no URI with a host."""
    try:
        parts = urlsplit(uri)
        port = parts.port
    except ValueError:
        return None
    if not parts.hostname or any(character.isspace() for character in uri):
        return None
    return Endpoint(
        scheme=parts.scheme,
        host=parts.hostname.rstrip("."),
        port=port,
        path=parts.path.rstrip("/"),
        has_query=bool(parts.query or parts.fragment),
    )
