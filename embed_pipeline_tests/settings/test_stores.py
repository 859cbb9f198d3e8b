from __future__ import annotations

import pytest

from embed_pipeline.settings import StoreName, load_settings
from embed_pipeline_tests.settings.environments import PRODUCTION, problems

NEO4J = {
    **PRODUCTION,
    "EMBED_ENV": "test",
    "EMBED_STORE": "neo4j",
}


def test_neo4j_settings_carry_both_servers() -> None:
    stores = load_settings(PRODUCTION).stores

    assert stores.queue is not None
    assert stores.graph is not None
    assert (stores.queue.user, stores.queue.database) == ("neo4j", "embedding-jobs")
    assert (stores.graph.user, stores.graph.database) == ("neo4j", "neo4j")
    assert stores.queue.password.get_secret_value() == "queue-pw-for-tests"


def test_sqlite_needs_no_server() -> None:
    stores = load_settings({"EMBED_ENV": "local"}).stores

    assert (stores.backend, stores.queue, stores.graph) == (StoreName.SQLITE, None, None)


@pytest.mark.parametrize("part", ["QUEUE_URI", "QUEUE_PASSWORD", "GRAPH_URI", "GRAPH_PASSWORD"])
@pytest.mark.parametrize("empty", [True, False])
def test_neo4j_without_a_server_or_password_is_refused(part: str, empty: bool) -> None:
    variable = f"EMBED_{part}"
    environ = {name: text for name, text in NEO4J.items() if name != variable}

    told = problems({**environ, variable: ""} if empty else environ)

    assert told == (f"{variable} must be set when the store is neo4j.",)


@pytest.mark.parametrize(
    "uri",
    [
        "bolt+s://db.example",
        "neo4j+s://db.example:7687",
        "neo4j+s://db.example?policy=eu",
        "bolt://localhost",
        "neo4j://127.0.0.1:7688",
        "bolt://[::1]:7687",
    ],
)
def test_encrypted_or_loopback_uris_are_taken(uri: str) -> None:
    assert load_settings({**PRODUCTION, "EMBED_QUEUE_URI": uri}).notes == ()


@pytest.mark.parametrize("prefix", ["EMBED_QUEUE", "EMBED_GRAPH"])
@pytest.mark.parametrize("uri", ["bolt://db.example", "neo4j://192.168.1.5:7687", "bolt://0.0.0.0"])
def test_plaintext_to_another_machine_needs_a_permission_which_is_noted(
    prefix: str, uri: str
) -> None:
    environ = {**PRODUCTION, f"{prefix}_URI": uri}

    assert problems(environ) == (
        f"{prefix}_URI must use bolt+s:// or neo4j+s:// because its host is not loopback"
        f" ({prefix}_ALLOW_PLAINTEXT=true allows plain text).",
    )
    assert load_settings({**environ, f"{prefix}_ALLOW_PLAINTEXT": "true"}).notes == (
        f"{prefix}_ALLOW_PLAINTEXT is true: password and data travel unencrypted to {prefix}_URI.",
    )


@pytest.mark.parametrize(
    "uri", ["http://db.example", "db.example:7687", "bolt+s://", "neo4j+s://a:b", "bolt+s://a/b"]
)
def test_what_is_no_bolt_uri_is_refused(uri: str) -> None:
    assert problems({**PRODUCTION, "EMBED_GRAPH_URI": uri}) == (
        "EMBED_GRAPH_URI must be bolt://, neo4j://, bolt+s:// or neo4j+s://"
        " followed by a host and perhaps a port.",
    )


@pytest.mark.parametrize("uri", ["bolt+s://db.example?policy=eu", "bolt://localhost:7687/?a=b#c"])
def test_a_routing_context_is_refused_where_nothing_is_routed(uri: str) -> None:
    assert problems({**PRODUCTION, "EMBED_GRAPH_URI": uri}) == (
        "EMBED_GRAPH_URI must not carry a query: only neo4j:// and neo4j+s:// have a routing"
        " context.",
    )


def test_self_signed_certificates_are_for_tests_only() -> None:
    uri = {"EMBED_QUEUE_URI": "bolt+ssc://db.example"}

    told = problems({**PRODUCTION, **uri})

    assert told[0].startswith("EMBED_QUEUE_URI must be bolt://")
    assert load_settings({**NEO4J, **uri}).stores.queue is not None


@pytest.mark.parametrize(
    ("queue", "graph"),
    [
        ("bolt+s://db.example", "neo4j+s://DB.example:7687"),
        ("bolt://localhost", "bolt://127.0.0.1:7687"),
        ("bolt://[::1]:7687", "neo4j://localhost/"),
        ("neo4j+s://db.example.", "neo4j+s://db.example"),
    ],
)
def test_one_database_for_queue_and_graph_is_refused(queue: str, graph: str) -> None:
    environ = {**PRODUCTION, "EMBED_QUEUE_URI": queue, "EMBED_GRAPH_URI": graph}

    told = problems({**environ, "EMBED_QUEUE_DATABASE": "Neo4j"})

    assert told == (
        "EMBED_QUEUE_DATABASE must be another database than EMBED_GRAPH_DATABASE, or be on another"
        " server (EMBED_QUEUE_URI): queue and graph are never kept together.",
    )
    assert load_settings(environ).stores.backend is StoreName.NEO4J


def test_two_community_servers_may_use_the_same_database_name() -> None:
    environ = {
        **PRODUCTION,
        "EMBED_QUEUE_URI": "bolt://localhost:7687",
        "EMBED_GRAPH_URI": "bolt://localhost:7688",
        "EMBED_QUEUE_DATABASE": "neo4j",
    }

    assert load_settings(environ).stores.backend is StoreName.NEO4J


@pytest.mark.parametrize("name", ["", "ab", "1abc", "a b c", "system", "SYSTEM", "a`b"])
def test_bad_database_names_are_refused(name: str) -> None:
    (sentence,) = problems({**PRODUCTION, "EMBED_QUEUE_DATABASE": name})

    assert sentence.startswith("EMBED_QUEUE_DATABASE must be a database name of 3 to 63 ")
