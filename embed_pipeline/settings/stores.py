"""Where the queue and the graph are kept: never in the same database, never in readable transit."""

from __future__ import annotations

from typing import Annotated

from pydantic import SecretStr

from embed_pipeline.settings.endpoints import carries_credentials, endpoint_of
from embed_pipeline.settings.findings import Findings
from embed_pipeline.settings.kinds import Address, Flag, OneOf, Password, Pattern, listed
from embed_pipeline.settings.shape import Environment, Neo4jSettings, StoreName, StoreSettings
from embed_pipeline.settings.variables import Variables, setting

BOLT_PORT = 7687
PLAIN = ("bolt", "neo4j")
ENCRYPTED = ("bolt+s", "neo4j+s")
SELF_SIGNED = ("bolt+ssc", "neo4j+ssc")
"""Encrypted, but the server may be anybody: for tests only."""

DEFAULT_STORE = {
    Environment.LOCAL: StoreName.SQLITE,
    Environment.TEST: StoreName.SQLITE,
    Environment.PRODUCTION: StoreName.NEO4J,
}
_URI = Address("a bolt+s:// or neo4j+s:// URI without credentials; bolt:// or neo4j:// to loopback")
_USER = Pattern("a user name of up to 128 characters without spaces", r"\S{1,128}")
_DATABASE = Pattern(
    "a database name of 3 to 63 letters, digits, dots and dashes that starts with a letter"
    " and is not system",
    r"(?!(?i:system)$)[A-Za-z][A-Za-z0-9.-]{2,62}",
)


class BackendVariables(Variables):
    backend: Annotated[StoreName | None, OneOf(StoreName)] = setting(
        "EMBED_STORE",
        "Where queue and graph are kept: in files under EMBED_HOME, or in two Neo4j databases.",
        shown="local, test: sqlite; production: neo4j",
    )


class ServerVariables(Variables):
    """What the queue's and the graph's server have in common."""

    uri: str | None
    user: str
    password: SecretStr | None
    database: str
    allow_plaintext: bool


class QueueServerVariables(ServerVariables):
    uri: Annotated[str | None, _URI] = setting(
        "EMBED_QUEUE_URI", "The queue's server.", shown="none; must be set for neo4j"
    )
    user: Annotated[str, _USER] = setting(
        "EMBED_QUEUE_USER", "The user for the queue.", default="neo4j"
    )
    password: Annotated[SecretStr | None, Password()] = setting(
        "EMBED_QUEUE_PASSWORD", "That user's password.", shown="none; must be set for neo4j"
    )
    database: Annotated[str, _DATABASE] = setting(
        "EMBED_QUEUE_DATABASE", "The queue's database.", default="embedding-jobs"
    )
    allow_plaintext: Annotated[bool, Flag()] = setting(
        "EMBED_QUEUE_ALLOW_PLAINTEXT",
        "Allow bolt:// or neo4j:// to another machine: password and jobs travel readable.",
        default=False,
    )


class GraphServerVariables(ServerVariables):
    uri: Annotated[str | None, _URI] = setting(
        "EMBED_GRAPH_URI", "The knowledge graph's server.", shown="none; must be set for neo4j"
    )
    user: Annotated[str, _USER] = setting(
        "EMBED_GRAPH_USER", "The user for the graph.", default="neo4j"
    )
    password: Annotated[SecretStr | None, Password()] = setting(
        "EMBED_GRAPH_PASSWORD", "That user's password.", shown="none; must be set for neo4j"
    )
    database: Annotated[str, _DATABASE] = setting(
        "EMBED_GRAPH_DATABASE", "The graph's database.", default="neo4j"
    )
    allow_plaintext: Annotated[bool, Flag()] = setting(
        "EMBED_GRAPH_ALLOW_PLAINTEXT",
        "Allow bolt:// or neo4j:// to another machine: password and entities travel readable.",
        default=False,
    )


def store_settings(
    given: BackendVariables,
    queue: QueueServerVariables,
    graph: GraphServerVariables,
    environment: Environment,
    findings: Findings,
) -> StoreSettings:
    backend = given.backend or DEFAULT_STORE[environment]
    if backend is StoreName.SQLITE:
        return StoreSettings(backend=backend)
    servers = (
        _server("EMBED_QUEUE", queue, environment, findings),
        _server("EMBED_GRAPH", graph, environment, findings),
    )
    _check_apart(queue, graph, findings)
    return StoreSettings(backend=backend, queue=servers[0], graph=servers[1])


def _server(
    prefix: str, given: ServerVariables, environment: Environment, findings: Findings
) -> Neo4jSettings | None:
    for part, value in (("URI", given.uri), ("PASSWORD", given.password)):
        if value is None:
            findings.refuse(f"{prefix}_{part}", "be set when the store is neo4j")
    if given.uri is None or given.password is None:
        return None
    _check_uri(prefix, given.uri, given.allow_plaintext, environment, findings)
    return Neo4jSettings(
        uri=given.uri, user=given.user, password=given.password, database=given.database
    )


def _check_uri(
    prefix: str, uri: str, allow_plaintext: bool, environment: Environment, findings: Findings
) -> None:
    variable = f"{prefix}_URI"
    if carries_credentials(uri):
        findings.refuse(
            variable, f"not carry credentials: they are {prefix}_USER and {prefix}_PASSWORD"
        )
        return
    endpoint = endpoint_of(uri)
    schemes = PLAIN + ENCRYPTED + (SELF_SIGNED if environment is Environment.TEST else ())
    if endpoint is None or endpoint.scheme not in schemes or endpoint.path:
        starts = listed((f"{scheme}://" for scheme in schemes), "or")
        findings.refuse(variable, f"be {starts} followed by a host and perhaps a port")
    elif endpoint.has_query and endpoint.scheme.startswith("bolt"):
        findings.refuse(
            variable, "not carry a query: only neo4j:// and neo4j+s:// have a routing context"
        )
    elif endpoint.scheme in PLAIN and not endpoint.is_loopback:
        if allow_plaintext:
            findings.note(
                f"{prefix}_ALLOW_PLAINTEXT is true: password and data travel unencrypted to"
                f" {variable}."
            )
        else:
            findings.refuse(
                variable,
                "use bolt+s:// or neo4j+s:// because its host is not loopback"
                f" ({prefix}_ALLOW_PLAINTEXT=true allows plain text)",
            )


def _check_apart(
    queue: QueueServerVariables, graph: GraphServerVariables, findings: Findings
) -> None:
    if not findings.sound("EMBED_QUEUE_URI", "EMBED_GRAPH_URI"):
        return
    if not findings.sound("EMBED_QUEUE_DATABASE", "EMBED_GRAPH_DATABASE"):
        return
    if _place(queue) == _place(graph):
        findings.refuse(
            "EMBED_QUEUE_DATABASE",
            "be another database than EMBED_GRAPH_DATABASE, or be on another server"
            " (EMBED_QUEUE_URI): queue and graph are never kept together",
        )


def _place(server: ServerVariables) -> tuple[tuple[str, int], str]:
    endpoint = endpoint_of(server.uri or "")
    assert endpoint is not None, "only asked of URIs that were found sound"
    return endpoint.server(BOLT_PORT), server.database.lower()
