"""Where the queue and the graph are kept: each in a store of its own, never in one database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

from pydantic import SecretStr

from embed_pipeline.settings.findings import Findings
from embed_pipeline.settings.kinds import Address, Flag, OneOf, Password, Pattern
from embed_pipeline.settings.servers import (
    ServerVariables,
    check_apart,
    neo4j_server,
    postgres_server,
)
from embed_pipeline.settings.shape import (
    GRAPH_STORES,
    Environment,
    StoreName,
    StoreSettings,
)
from embed_pipeline.settings.variables import Variables, parse, setting

DEFAULT_STORE = {
    Environment.LOCAL: StoreName.SQLITE,
    Environment.TEST: StoreName.SQLITE,
    Environment.PRODUCTION: StoreName.NEO4J,
}
_BOLT = "a bolt+s:// or neo4j+s:// URI without credentials; bolt:// or neo4j:// to loopback"
_POSTGRES = (
    "postgresql:// with a host and perhaps a port, sslmode and sslrootcert (postgres);"
    f" {_BOLT} (neo4j)"
)
_USER = Pattern("a user name of up to 128 characters without spaces", r"\S{1,128}")
_DATABASE = Pattern(
    "a database name of up to 63 letters, digits, dots, dashes and underscores that starts with a"
    " letter; on Neo4j at least 3, without underscores, and not system",
    r"[A-Za-z][A-Za-z0-9._-]{0,62}",
)
_SCHEMA = Pattern(
    "a name of up to 63 lower-case letters, digits and underscores that does not start with a"
    " digit or pg_",
    r"(?!pg_)[a-z_][a-z0-9_]{0,62}",
)


class BackendVariables(Variables):
    both: Annotated[StoreName | None, OneOf(GRAPH_STORES)] = setting(
        "EMBED_STORE",
        "Where queue and graph are kept, where the two variables below do not say otherwise: in"
        " files under EMBED_HOME, or in two Neo4j databases.",
        shown="local, test: sqlite; production: neo4j",
    )
    queue: Annotated[StoreName | None, OneOf(StoreName)] = setting(
        "EMBED_QUEUE_STORE", "Where the queue is kept.", shown="as EMBED_STORE"
    )
    graph: Annotated[StoreName | None, OneOf(GRAPH_STORES)] = setting(
        "EMBED_GRAPH_STORE", "Where the graph is kept.", shown="as EMBED_STORE"
    )


class QueueServerVariables(ServerVariables):
    uri: Annotated[str | None, Address(_POSTGRES)] = setting(
        "EMBED_QUEUE_URI", "The queue's server.", shown="none; must be set for neo4j and postgres"
    )
    user: Annotated[str | None, _USER] = setting(
        "EMBED_QUEUE_USER", "The user for the queue.", shown="neo4j: neo4j; postgres: must be set"
    )
    password: Annotated[SecretStr | None, Password()] = setting(
        "EMBED_QUEUE_PASSWORD",
        "That user's password.",
        shown="none; must be set for neo4j, and for postgres on another machine",
    )
    database: Annotated[str | None, _DATABASE] = setting(
        "EMBED_QUEUE_DATABASE",
        "The queue's database.",
        shown="neo4j: embedding-jobs; postgres: must be set",
    )
    schema_name: Annotated[str, _SCHEMA] = setting(
        "EMBED_QUEUE_SCHEMA",
        "The PostgreSQL schema of the queue's tables; one that holds other tables is refused.",
        default="embed_pipeline",
    )
    allow_plaintext: Annotated[bool, Flag()] = setting(
        "EMBED_QUEUE_ALLOW_PLAINTEXT",
        "Allow an unencrypted connection to another machine: password and jobs can be read on"
        " the way.",
        default=False,
    )


class GraphServerVariables(ServerVariables):
    uri: Annotated[str | None, Address(_BOLT)] = setting(
        "EMBED_GRAPH_URI", "The knowledge graph's server.", shown="none; must be set for neo4j"
    )
    user: Annotated[str | None, _USER] = setting(
        "EMBED_GRAPH_USER", "The user for the graph.", shown="neo4j"
    )
    password: Annotated[SecretStr | None, Password()] = setting(
        "EMBED_GRAPH_PASSWORD", "That user's password.", shown="none; must be set for neo4j"
    )
    database: Annotated[str | None, _DATABASE] = setting(
        "EMBED_GRAPH_DATABASE", "The graph's database.", shown="neo4j"
    )
    allow_plaintext: Annotated[bool, Flag()] = setting(
        "EMBED_GRAPH_ALLOW_PLAINTEXT",
        "Allow bolt:// or neo4j:// to another machine: password and entities can be read on the"
        " way.",
        default=False,
    )


class Neo4jVariables(ServerVariables):
    """The names that Neo4j's own tools and Aura's files use. They never select a store."""

    uri: Annotated[str | None, Address(_BOLT)] = setting(
        "NEO4J_URI",
        "Stands for EMBED_GRAPH_URI where the graph is in Neo4j and no EMBED_GRAPH_URI, _USER,"
        " _PASSWORD or _DATABASE is set. The three below are read only together with it.",
    )
    user: Annotated[str | None, _USER] = setting(
        "NEO4J_USERNAME", "Stands for EMBED_GRAPH_USER.", shown="neo4j"
    )
    password: Annotated[SecretStr | None, Password()] = setting(
        "NEO4J_PASSWORD", "Stands for EMBED_GRAPH_PASSWORD."
    )
    database: Annotated[str | None, _DATABASE] = setting(
        "NEO4J_DATABASE", "Stands for EMBED_GRAPH_DATABASE.", shown="neo4j"
    )


def store_settings(
    environ: Mapping[str, str], environment: Environment, findings: Findings
) -> StoreSettings:
    given = parse(BackendVariables, environ, findings)
    both = given.both or DEFAULT_STORE[environment]
    stores = StoreSettings(queue=given.queue or both, graph=given.graph or both)
    queue = parse(QueueServerVariables, environ, findings)
    graph: ServerVariables = parse(GraphServerVariables, environ, findings)
    if stores.queue is StoreName.POSTGRES:
        server = postgres_server(queue, schema=queue.schema_name, findings=findings)
        stores = replace(stores, queue_server=server)
    elif stores.queue is StoreName.NEO4J:
        server = neo4j_server(queue, "queue", "embedding-jobs", environment, findings)
        stores = replace(stores, queue_server=server)
    if stores.graph is StoreName.NEO4J:
        if environ.get("NEO4J_URI") and not graph.is_set:
            # Only now, so that a variable of another tool stops nothing where it is not used.
            neo4j = parse(Neo4jVariables, environ, findings)
            graph = neo4j.model_copy(update={"allow_plaintext": graph.allow_plaintext})
        server = neo4j_server(graph, "graph", "neo4j", environment, findings)
        stores = replace(stores, graph_server=server)
        if stores.queue is StoreName.NEO4J:
            check_apart(queue, stores.queue_server, graph, stores.graph_server, findings)
    return stores
