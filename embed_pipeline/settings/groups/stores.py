"""Where the queue and the graph are kept: each in a store of its own, never in one database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from pydantic import SecretStr

from embed_pipeline.settings.groups.general import Environment
from embed_pipeline.settings.groups.servers import (
    ServerSettings,
    check_apart,
    neo4j_server,
    postgres_server,
)
from embed_pipeline.settings.parsing.kinds import FLAG, PASSWORD, address, one_of, pattern
from embed_pipeline.settings.parsing.variables import Findings, parse, setting


class StoreName(StrEnum):
    """Each is a package of this name in `stores/`."""

    SQLITE = "sqlite"
    NEO4J = "neo4j"
    POSTGRES = "postgres"


GRAPH_STORES = (StoreName.SQLITE, StoreName.NEO4J)
"""PostgreSQL keeps only queues."""

_SCHEMES = {"postgresql": StoreName.POSTGRES, "postgres": StoreName.POSTGRES}


def store_at(uri: str) -> StoreName:
    """The store that an address belongs to; other schemes are for Neo4j to accept or refuse."""
    return _SCHEMES.get(uri.partition(":")[0].strip().lower(), StoreName.NEO4J)


DEFAULT_STORE = {
    Environment.LOCAL: StoreName.SQLITE,
    Environment.TEST: StoreName.SQLITE,
    Environment.PRODUCTION: StoreName.NEO4J,
}
_BOLT = "a bolt+s:// or neo4j+s:// URI without credentials; bolt:// or neo4j:// to loopback"
_BOLT_URI = address(_BOLT)
_QUEUE_URI = address(
    "postgresql:// with a host and perhaps a port, sslmode and sslrootcert (postgres);"
    f" {_BOLT} (neo4j)"
)
_USER = pattern("a user name of up to 128 characters without spaces", r"\S{1,128}")
_DATABASE = pattern(
    "a database name of up to 63 letters, digits, dots, dashes and underscores that starts with a"
    " letter; on Neo4j at least 3, without underscores, and not system",
    r"[A-Za-z][A-Za-z0-9._-]{0,62}",
)
_SCHEMA = pattern(
    "a name of up to 63 lower-case letters, digits and underscores that does not start with a"
    " digit or pg_",
    r"(?!pg_)[a-z_][a-z0-9_]{0,62}",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """SQLite has no server; the others always have one."""

    both: StoreName | None = setting(
        "EMBED_STORE",
        one_of(GRAPH_STORES),
        "Where queue and graph are kept, where the two variables below do not say otherwise: in"
        " files under EMBED_HOME, or in two Neo4j databases.",
        shown="local, test: sqlite; production: neo4j",
    )
    queue: StoreName = setting(
        "EMBED_QUEUE_STORE", one_of(StoreName), "Where the queue is kept.", shown="as EMBED_STORE"
    )
    graph: StoreName = setting(
        "EMBED_GRAPH_STORE",
        one_of(GRAPH_STORES),
        "Where the graph is kept.",
        shown="as EMBED_STORE",
    )
    queue_server: ServerSettings | None = None
    graph_server: ServerSettings | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueServer(ServerSettings):
    uri: str = setting(
        "EMBED_QUEUE_URI",
        _QUEUE_URI,
        "The queue's server.",
        shown="none; must be set for neo4j and postgres",
    )
    user: str = setting(
        "EMBED_QUEUE_USER",
        _USER,
        "The user for the queue.",
        shown="neo4j: neo4j; postgres: must be set",
    )
    password: SecretStr = setting(
        "EMBED_QUEUE_PASSWORD",
        PASSWORD,
        "That user's password.",
        shown="none; must be set for neo4j, and for postgres on another machine",
    )
    database: str = setting(
        "EMBED_QUEUE_DATABASE",
        _DATABASE,
        "The queue's database.",
        shown="neo4j: embedding-jobs; postgres: must be set",
    )
    schema: str = setting(
        "EMBED_QUEUE_SCHEMA",
        _SCHEMA,
        "The PostgreSQL schema of the queue's tables; one that holds other tables is refused.",
        default="embed_pipeline",
    )
    allow_plaintext: bool = setting(
        "EMBED_QUEUE_ALLOW_PLAINTEXT",
        FLAG,
        "Allow an unencrypted connection to another machine: password and jobs can be read on"
        " the way.",
        default="false",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphServer(ServerSettings):
    uri: str = setting(
        "EMBED_GRAPH_URI",
        _BOLT_URI,
        "The knowledge graph's server.",
        shown="none; must be set for neo4j",
    )
    user: str = setting("EMBED_GRAPH_USER", _USER, "The user for the graph.", shown="neo4j")
    password: SecretStr = setting(
        "EMBED_GRAPH_PASSWORD",
        PASSWORD,
        "That user's password.",
        shown="none; must be set for neo4j",
    )
    database: str = setting(
        "EMBED_GRAPH_DATABASE", _DATABASE, "The graph's database.", shown="neo4j"
    )
    allow_plaintext: bool = setting(
        "EMBED_GRAPH_ALLOW_PLAINTEXT",
        FLAG,
        "Allow bolt:// or neo4j:// to another machine: password and entities can be read on the"
        " way.",
        default="false",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Neo4jServer(ServerSettings):
    """The names that Neo4j's own tools and Aura's files use. They never select a store."""

    uri: str = setting(
        "NEO4J_URI",
        _BOLT_URI,
        "Stands for EMBED_GRAPH_URI where the graph is in Neo4j and no EMBED_GRAPH_URI, _USER,"
        " _PASSWORD or _DATABASE is set. The three below are read only together with it.",
    )
    user: str = setting("NEO4J_USERNAME", _USER, "Stands for EMBED_GRAPH_USER.", shown="neo4j")
    password: SecretStr = setting("NEO4J_PASSWORD", PASSWORD, "Stands for EMBED_GRAPH_PASSWORD.")
    database: str = setting(
        "NEO4J_DATABASE", _DATABASE, "Stands for EMBED_GRAPH_DATABASE.", shown="neo4j"
    )


def store_settings(
    environ: Mapping[str, str], environment: Environment, findings: Findings
) -> StoreSettings:
    given = parse(StoreSettings, environ, findings)
    both = given.both or DEFAULT_STORE[environment]
    stores = replace(given, both=None, queue=given.queue or both, graph=given.graph or both)
    queue: ServerSettings = parse(QueueServer, environ, findings)
    graph: ServerSettings = parse(GraphServer, environ, findings)
    queue_server: ServerSettings | None = None
    if stores.queue is StoreName.POSTGRES:
        queue_server = postgres_server(queue, findings)
    elif stores.queue is StoreName.NEO4J:
        queue_server = neo4j_server(queue, "queue", "embedding-jobs", environment, findings)
    if stores.graph is StoreName.SQLITE:
        return replace(stores, queue_server=queue_server)
    if environ.get("NEO4J_URI") and not graph.is_set:
        # Read only here, so that a variable of another tool stops nothing where it is not used.
        own = parse(Neo4jServer, environ, findings)
        graph = replace(own, allow_plaintext=graph.allow_plaintext)
    graph_server = neo4j_server(graph, "graph", "neo4j", environment, findings)
    if stores.queue is StoreName.NEO4J and queue_server and graph_server:
        check_apart(queue_server, graph_server, findings)
    return replace(stores, queue_server=queue_server, graph_server=graph_server)
