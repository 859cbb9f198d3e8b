"""Where a URI or a libpq URL leads, and whether the connection is encrypted."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import parse_qs, unquote, urlsplit

SCHEMES = ("postgresql", "postgres")
ENCRYPTED = ("require", "verify-ca", "verify-full")
SSL_MODES = ("disable", "allow", "prefer", *ENCRYPTED)


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
        except ValueError:  # a name may resolve to any address
            return False

    def server(self, default_port: int) -> tuple[str, int]:
        """Equal for two spellings of the usual loopback address."""
        host = "localhost" if self.host in ("127.0.0.1", "::1") else self.host
        return host, self.port or default_port


def carries_credentials(uri: str) -> bool:
    """Any "@" counts: an unescaped "/" in a password moves it out of the part before the host."""
    return "@" in uri


def endpoint_of(uri: str) -> Endpoint | None:
    """None when the text is not a URI with a host."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresUrl:
    """`hosts` are all that a connection may go to; one that is a folder is a Unix socket's."""

    hosts: tuple[str, ...]
    password: str | None
    sslmode: str | None
    has_path: bool
    options: frozenset[str]
    """The names of the options behind the question mark."""

    @property
    def is_loopback(self) -> bool:
        return all(_is_local(host) for host in self.hosts)

    @property
    def is_encrypted(self) -> bool:
        return self.sslmode in ENCRYPTED


def postgres_url(text: str) -> PostgresUrl | None:
    """None when libpq could not use it, or might read it differently.

    Without a host libpq uses PGHOST, so the host would be unknown here. A bare "#" or a second "@"
    ends the credentials at another place for libpq than for the standard library.
    """
    try:
        parts = urlsplit(text)
        query = parts.query.replace("+", "%2B")  # libpq does not read + as a blank
        options = parse_qs(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError:
        return None
    user_info, _, host_part = parts.netloc.rpartition("@")
    ambiguous = "#" in text or text.count("@") > parts.netloc.count("@") or "@" in user_info
    if parts.scheme not in SCHEMES or ambiguous or any(letter.isspace() for letter in text):
        return None
    # As in libpq the last of a repeated option wins, and an address wins over a name.
    elsewhere = options.get("hostaddr", options.get("host"))
    hosts = tuple(elsewhere[-1].split(",")) if elsewhere else _hosts_of(host_part)
    sslmode = options.get("sslmode", [None])[-1]
    if not hosts or "" in hosts or sslmode not in (None, *SSL_MODES):
        return None
    in_query = options.get("password", [""])[-1]
    password = in_query or unquote(user_info.partition(":")[2])
    return PostgresUrl(
        hosts=hosts,
        password=password or None,
        sslmode=sslmode,
        has_path=bool(parts.path.strip("/")),
        options=frozenset(options),
    )


def _hosts_of(host_part: str) -> tuple[str, ...]:
    """`a:1,[::1]:2,%2Ftmp` names three servers to be tried in order."""
    found = []
    for place in host_part.split(","):
        name = place[1:].partition("]")[0] if place.startswith("[") else place.partition(":")[0]
        found.append(unquote(name))
    return tuple(found)


def _is_local(host: str) -> bool:
    if host.startswith(("/", "@")):  # a socket in a folder, or an abstract one
        return True
    endpoint = endpoint_of(f"postgresql://[{host}]" if ":" in host else f"postgresql://{host}")
    return endpoint is not None and endpoint.is_loopback
