"""Where a libpq URL leads, and whether what travels there can be read on the way."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qs, unquote, urlsplit

from embed_pipeline.settings.endpoints import endpoint_of

SCHEMES = ("postgresql", "postgres")
ENCRYPTED = ("require", "verify-ca", "verify-full")
SSL_MODES = ("disable", "allow", "prefer", *ENCRYPTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresUrl:
    """`hosts` are those that a connection may really go to; a folder is a Unix socket's."""

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
    """None when libpq could not use it, or might understand it otherwise than we do.

    Without a host libpq asks PGHOST, so that nobody could say here where the jobs go; a bare "#"
    or a second "@" ends the credentials elsewhere for libpq than for the standard library.
    """
    try:
        parts = urlsplit(text)
        query = parts.query.replace("+", "%2B")  # libpq's plus is no blank
        options = parse_qs(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError:
        return None
    user_info, _, host_part = parts.netloc.rpartition("@")
    ambiguous = "#" in text or text.count("@") > parts.netloc.count("@") or "@" in user_info
    if parts.scheme not in SCHEMES or ambiguous or any(letter.isspace() for letter in text):
        return None
    # A later word wins in libpq too, and an address wins over a name.
    elsewhere = options.get("hostaddr", options.get("host"))
    hosts = _listed(elsewhere[-1]) if elsewhere else _hosts_of(host_part)
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


def _listed(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _is_local(host: str) -> bool:
    if host.startswith(("/", "@")):  # a socket in a folder, or an abstract one
        return True
    endpoint = endpoint_of(f"postgresql://[{host}]" if ":" in host else f"postgresql://{host}")
    return endpoint is not None and endpoint.is_loopback
