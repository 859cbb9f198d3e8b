"""What makes the address of a database server usable, and which connections are encrypted."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from urllib.parse import quote

import certifi
from pydantic import SecretStr

from embed_pipeline.settings.groups.general import Environment
from embed_pipeline.settings.parsing.addresses import (
    PostgresUrl,
    carries_credentials,
    endpoint_of,
    postgres_url,
)
from embed_pipeline.settings.parsing.kinds import listed
from embed_pipeline.settings.parsing.variables import Findings, settings_of

BOLT_PORT = 7687
PLAIN = ("bolt", "neo4j")
ENCRYPTED = ("bolt+s", "neo4j+s")
SELF_SIGNED = ("bolt+ssc", "neo4j+ssc")
"""Encrypted, but the server is not verified: for tests only."""

NEO4J_DATABASE = re.compile(r"(?!(?i:system)$)[A-Za-z][A-Za-z0-9.-]{2,62}")
POSTGRES_OPTIONS = frozenset({"host", "sslmode", "sslrootcert"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """Complete where a store uses it: `neo4j_server` and `postgres_server` see to that."""

    uri: str
    user: str
    password: SecretStr
    database: str
    schema: str = ""
    """Only PostgreSQL has one."""
    allow_plaintext: bool = False

    @property
    def is_set(self) -> bool:
        return any((self.uri, self.user, self.password, self.database))

    def variable(self, part: str) -> str:
        """The variable that the part comes from."""
        return settings_of(type(self))[part].variable


def neo4j_server(
    given: ServerSettings,
    role: str,
    default_database: str,
    environment: Environment,
    findings: Findings,
) -> ServerSettings | None:
    _require(given, ("uri", "password"), f"be set when the {role} store is neo4j", findings)
    if not given.uri or not given.password:
        return None
    _check_bolt(given, environment, findings)
    database = given.database or default_database
    if not NEO4J_DATABASE.fullmatch(database):
        findings.refuse(
            given.variable("database"),
            "be a database name of 3 to 63 letters, digits, dots and dashes that starts with a"
            f" letter and is not system, got {database!r}",
        )
    return replace(given, user=given.user or "neo4j", database=database)


def postgres_server(given: ServerSettings, findings: Findings) -> ServerSettings | None:
    """`PG*` variables and password files are not read, so all that is needed must be set."""
    must = "be set when the queue store is postgres"
    _require(given, ("uri", "user", "database"), must, findings)
    url = _checked_postgres(given, findings) if given.uri else None
    if url is None:
        return None
    if not url.is_loopback:
        _require(given, ("password",), f"{must} and its host is not loopback", findings)
    return replace(given, uri=_with_tls(given.uri, url), password=given.password or SecretStr(""))


def check_apart(queue: ServerSettings, graph: ServerSettings, findings: Findings) -> None:
    """Two different addresses may still be one database; `init` compares what it reaches."""
    names = [given.variable(part) for given in (queue, graph) for part in ("uri", "database")]
    if findings.accepted(*names) and _bolt_place(queue) == _bolt_place(graph):
        findings.refuse(
            queue.variable("database"),
            f"be another database than {graph.variable('database')}, or be on another server"
            f" ({queue.variable('uri')}): queue and graph are never kept together",
        )


def _require(given: ServerSettings, parts: tuple[str, ...], must: str, findings: Findings) -> None:
    for part in parts:
        if not getattr(given, part):
            findings.refuse(given.variable(part), must)


def _check_bolt(given: ServerSettings, environment: Environment, findings: Findings) -> None:
    variable = given.variable("uri")
    if _refuse_credentials(given, findings):
        return
    endpoint = endpoint_of(given.uri)
    schemes = PLAIN + ENCRYPTED + (SELF_SIGNED if environment is Environment.TEST else ())
    if endpoint is None or endpoint.scheme not in schemes or endpoint.path:
        starts = listed(f"{scheme}://" for scheme in schemes)
        findings.refuse(variable, f"be {starts} followed by a host and perhaps a port")
    elif endpoint.has_query and endpoint.scheme.startswith("bolt"):
        findings.refuse(
            variable, "not carry a query: only neo4j:// and neo4j+s:// have a routing context"
        )
    elif endpoint.scheme in PLAIN and not endpoint.is_loopback:
        _require_encryption(given, "use bolt+s:// or neo4j+s://", findings)


def _checked_postgres(given: ServerSettings, findings: Findings) -> PostgresUrl | None:
    variable = given.variable("uri")
    if _refuse_credentials(given, findings):
        return None
    url = postgres_url(given.uri)
    if url is None or url.has_path or not url.options <= POSTGRES_OPTIONS:
        findings.refuse(
            variable,
            "be postgresql:// followed by a host and perhaps a port (or ?host= and the folder of a"
            " socket), without a database and without options other than sslmode and sslrootcert",
        )
        return None
    if url.sslmode in ("require", "verify-ca"):
        findings.note(
            f"{variable} has sslmode={url.sslmode}: the connection is encrypted, but the server's"
            " name is not verified. Use verify-full."
        )
    elif url.sslmode not in (None, "verify-full") and not url.is_loopback:
        _require_encryption(given, "use sslmode=verify-full or require", findings)
    return url


def _with_tls(uri: str, url: PostgresUrl) -> str:
    """Every option is written down, so that libpq finds nothing to look up elsewhere."""
    sslmode = url.sslmode or ("prefer" if url.is_loopback else "verify-full")
    added = [] if url.sslmode else [f"sslmode={sslmode}"]
    if sslmode == "verify-full" and "sslrootcert" not in url.options:
        # Not `system`: the OpenSSL inside psycopg's wheel looks for authorities in a folder of its
        # own, which no machine has. These are the authorities that requests to providers trust.
        added.append(f"sslrootcert={quote(certifi.where())}")
    joint = "&" if url.options else ("" if uri.endswith("?") else "?")
    return f"{uri}{joint}{'&'.join(added)}" if added else uri


def _refuse_credentials(given: ServerSettings, findings: Findings) -> bool:
    if not carries_credentials(given.uri):
        return False
    user, password = given.variable("user"), given.variable("password")
    findings.refuse(given.variable("uri"), f"not carry credentials: they are {user} and {password}")
    return True


def _require_encryption(given: ServerSettings, remedy: str, findings: Findings) -> None:
    variable = given.variable("uri")
    role = "QUEUE" if variable.startswith("EMBED_QUEUE") else "GRAPH"  # NEO4J_URI is the graph's
    findings.require_encryption(
        variable,
        remedy,
        permission=f"EMBED_{role}_ALLOW_PLAINTEXT",
        allowed=given.allow_plaintext,
        cargo="password and data",
    )


def _bolt_place(server: ServerSettings) -> tuple[tuple[str, int], str]:
    endpoint = endpoint_of(server.uri)
    assert endpoint is not None, "only asked of URIs that were accepted"
    return endpoint.server(BOLT_PORT), server.database.lower()
