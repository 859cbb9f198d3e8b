from __future__ import annotations

from typing import ClassVar
from urllib.parse import quote

import certifi
import pytest

from embed_pipeline.settings import GRAPH_STORES, StoreName, load_settings
from embed_pipeline_tests.settings.environments import PRODUCTION, problems

AUTHORITIES = quote(certifi.where())

NEO4J = {
    **PRODUCTION,
    "EMBED_ENV": "test",
    "EMBED_STORE": "neo4j",
}
POSTGRES = {
    "EMBED_ENV": "test",
    "EMBED_QUEUE_STORE": "postgres",
    "EMBED_QUEUE_URI": "postgresql://db.example",
    "EMBED_QUEUE_USER": "queue",
    "EMBED_QUEUE_PASSWORD": "queue-pw-for-tests",
    "EMBED_QUEUE_DATABASE": "dagster",
}


def test_neo4j_settings_carry_both_servers() -> None:
    stores = load_settings(PRODUCTION).stores

    assert stores.queue_server is not None
    assert stores.graph_server is not None
    assert (stores.queue_server.user, stores.queue_server.database) == ("neo4j", "embedding-jobs")
    assert (stores.graph_server.user, stores.graph_server.database) == ("neo4j", "neo4j")
    assert stores.queue_server.password.get_secret_value() == "queue-pw-for-tests"


def test_sqlite_needs_no_server() -> None:
    stores = load_settings({"EMBED_ENV": "local"}).stores

    assert (stores.queue, stores.graph) == (StoreName.SQLITE, StoreName.SQLITE)
    assert (stores.queue_server, stores.graph_server) == (None, None)


@pytest.mark.parametrize("part", ["QUEUE_URI", "QUEUE_PASSWORD", "GRAPH_URI", "GRAPH_PASSWORD"])
@pytest.mark.parametrize("empty", [True, False])
def test_neo4j_without_a_server_or_password_is_refused(part: str, empty: bool) -> None:
    variable, role = f"EMBED_{part}", part.partition("_")[0].lower()
    environ = {name: text for name, text in NEO4J.items() if name != variable}

    reported = problems({**environ, variable: ""} if empty else environ)

    assert reported == (f"{variable} must be set when the {role} store is neo4j.",)


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

    reported = problems({**PRODUCTION, **uri})

    assert reported[0].startswith("EMBED_QUEUE_URI must be bolt://")
    assert load_settings({**NEO4J, **uri}).stores.queue_server is not None


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

    reported = problems({**environ, "EMBED_QUEUE_DATABASE": "Neo4j"})

    assert reported == (
        "EMBED_QUEUE_DATABASE must be another database than EMBED_GRAPH_DATABASE, or be on another"
        " server (EMBED_QUEUE_URI): queue and graph are never kept together.",
    )
    assert load_settings(environ).stores.queue is StoreName.NEO4J


def test_two_community_servers_may_use_the_same_database_name() -> None:
    environ = {
        **PRODUCTION,
        "EMBED_QUEUE_URI": "bolt://localhost:7687",
        "EMBED_GRAPH_URI": "bolt://localhost:7688",
        "EMBED_QUEUE_DATABASE": "neo4j",
    }

    assert load_settings(environ).stores.queue is StoreName.NEO4J


@pytest.mark.parametrize("name", ["", "ab", "1abc", "a b c", "system", "SYSTEM", "a_b_c", "a`b"])
def test_bad_database_names_are_refused(name: str) -> None:
    (sentence,) = problems({**PRODUCTION, "EMBED_QUEUE_DATABASE": name})

    assert sentence.startswith("EMBED_QUEUE_DATABASE must be a database name of ")


PAIRS = [(queue, graph) for queue in StoreName for graph in GRAPH_STORES]


@pytest.mark.parametrize(("queue", "graph"), PAIRS)
def test_queue_and_graph_stores_are_chosen_apart(queue: StoreName, graph: StoreName) -> None:
    servers = POSTGRES if queue is StoreName.POSTGRES else NEO4J
    environ = {**NEO4J, **servers, "EMBED_QUEUE_STORE": queue, "EMBED_GRAPH_STORE": graph}

    stores = load_settings(environ).stores

    assert (stores.queue, stores.graph) == (queue, graph)
    assert (stores.queue_server is None) == (queue is StoreName.SQLITE)
    assert (stores.graph_server is None) == (graph is StoreName.SQLITE)


def test_the_store_of_one_wins_over_the_store_of_both() -> None:
    environ = {"EMBED_ENV": "test", "EMBED_STORE": "neo4j", "EMBED_QUEUE_STORE": "sqlite"}

    reported = problems(environ)

    assert {sentence.split()[0] for sentence in reported} == {
        "EMBED_GRAPH_URI",
        "EMBED_GRAPH_PASSWORD",
    }


@pytest.mark.parametrize("variable", ["EMBED_STORE", "EMBED_GRAPH_STORE"])
def test_postgres_keeps_only_queues(variable: str) -> None:
    assert problems({"EMBED_ENV": "test", variable: "postgres"}) == (
        f"{variable} must be sqlite or neo4j, got 'postgres'.",
    )


class TestPostgres:
    @pytest.mark.parametrize("part", ["URI", "USER", "DATABASE", "PASSWORD"])
    def test_all_that_is_needed_must_be_set(self, part: str) -> None:
        variable = f"EMBED_QUEUE_{part}"

        (sentence,) = problems({n: t for n, t in POSTGRES.items() if n != variable})

        assert sentence.startswith(f"{variable} must be set when the queue store is postgres")

    @pytest.mark.parametrize("uri", ["postgresql://localhost:5433", "postgresql://?host=/run/pg"])
    def test_on_this_machine_it_needs_no_password_and_no_encryption(self, uri: str) -> None:
        environ = {**POSTGRES, "EMBED_QUEUE_URI": uri, "EMBED_QUEUE_PASSWORD": ""}

        loaded = load_settings(environ)

        server = loaded.stores.queue_server
        assert server is not None
        assert server.uri == f"{uri}{'&' if '?' in uri else '?'}sslmode=prefer"
        assert (server.schema, loaded.notes) == ("embed_pipeline", ())

    @pytest.mark.parametrize(
        ("given", "used"),
        [
            ("", f"?sslmode=verify-full&sslrootcert={AUTHORITIES}"),
            ("?sslmode=verify-full", f"?sslmode=verify-full&sslrootcert={AUTHORITIES}"),
            ("?sslmode=verify-full&sslrootcert=system",) * 2,
            ("?sslrootcert=/ca.pem", "?sslrootcert=/ca.pem&sslmode=verify-full"),
            ("?sslmode=verify-full&sslrootcert=/ca.pem",) * 2,
        ],
    )
    def test_another_machine_is_verified_unless_the_uri_says_less(
        self, given: str, used: str
    ) -> None:
        uri = "postgresql://db.example:5432"

        loaded = load_settings({**POSTGRES, "EMBED_QUEUE_URI": uri + given})

        assert loaded.stores.queue_server is not None
        assert loaded.stores.queue_server.uri == uri + used
        assert loaded.notes == ()

    @pytest.mark.parametrize("mode", ["require", "verify-ca"])
    def test_encryption_without_verification_is_noted(self, mode: str) -> None:
        uri = f"postgresql://db.example?sslmode={mode}"

        loaded = load_settings({**POSTGRES, "EMBED_QUEUE_URI": uri})

        assert loaded.notes == (
            f"EMBED_QUEUE_URI has sslmode={mode}: the connection is encrypted, but the server's"
            " name is not verified. Use verify-full.",
        )

    @pytest.mark.parametrize("mode", ["disable", "allow", "prefer"])
    def test_plaintext_to_another_machine_needs_a_permission(self, mode: str) -> None:
        environ = {**POSTGRES, "EMBED_QUEUE_URI": f"postgresql://db.example?sslmode={mode}"}

        assert problems(environ) == (
            "EMBED_QUEUE_URI must use sslmode=verify-full or require because its host is not"
            " loopback (EMBED_QUEUE_ALLOW_PLAINTEXT=true allows plain text).",
        )
        assert load_settings({**environ, "EMBED_QUEUE_ALLOW_PLAINTEXT": "true"}).notes == (
            "EMBED_QUEUE_ALLOW_PLAINTEXT is true: password and data travel unencrypted to"
            " EMBED_QUEUE_URI.",
        )

    @pytest.mark.parametrize(
        "uri",
        [
            "bolt://localhost",
            "postgresql://",
            "postgresql://db.example/jobs",
            "postgresql://db.example?sslmode=always",
            "postgresql://localhost?hostaddr=10.0.0.1",
            "postgresql://db.example?password=hunter22",
            "postgresql://db.example?options=-csearch_path%3Dx",
        ],
    )
    def test_other_uris_are_refused(self, uri: str) -> None:
        (sentence,) = problems({**POSTGRES, "EMBED_QUEUE_URI": uri})

        assert sentence.startswith("EMBED_QUEUE_URI must be postgresql:// followed by a host")
        assert "hunter22" not in sentence

    def test_credentials_in_the_uri_are_refused(self) -> None:
        (sentence,) = problems({**POSTGRES, "EMBED_QUEUE_URI": "postgresql://me:hunter22@db"})

        assert sentence == (
            "EMBED_QUEUE_URI must not carry credentials: they are EMBED_QUEUE_USER and"
            " EMBED_QUEUE_PASSWORD."
        )

    @pytest.mark.parametrize("schema", ["", "Jobs", "1st", "a-b", "pg_jobs", "x" * 64])
    def test_bad_schema_names_are_refused(self, schema: str) -> None:
        (sentence,) = problems({**POSTGRES, "EMBED_QUEUE_SCHEMA": schema})

        assert sentence.startswith("EMBED_QUEUE_SCHEMA must be a name of up to 63 lower-case")


class TestNeo4jsOwnVariables:
    GIVEN: ClassVar = {
        "EMBED_ENV": "test",
        "EMBED_GRAPH_STORE": "neo4j",
        "NEO4J_URI": "neo4j+s://aura.example",
        "NEO4J_USERNAME": "someone",
        "NEO4J_PASSWORD": "aura-pw-for-tests",
        "NEO4J_DATABASE": "people",
    }

    def test_they_name_the_graphs_server(self) -> None:
        server = load_settings(self.GIVEN).stores.graph_server

        assert server is not None
        assert (server.uri, server.user, server.database) == (
            "neo4j+s://aura.example",
            "someone",
            "people",
        )
        assert server.password.get_secret_value() == "aura-pw-for-tests"

    def test_they_never_select_a_store(self) -> None:
        environ = {**self.GIVEN, "EMBED_GRAPH_STORE": "sqlite", "NEO4J_DATABASE": "no such name"}

        assert load_settings(environ).stores.graph_server is None

    @pytest.mark.parametrize("part", ["URI", "USER", "PASSWORD", "DATABASE"])
    def test_any_variable_of_ours_sets_all_of_them_aside(self, part: str) -> None:
        ours = {**NEO4J, "EMBED_GRAPH_USER": "me", "EMBED_GRAPH_DATABASE": "people"}
        variable = f"EMBED_GRAPH_{part}"

        reported = problems({**self.GIVEN, variable: ours[variable]})

        missing = {"EMBED_GRAPH_URI", "EMBED_GRAPH_PASSWORD"} - {variable}
        assert {sentence.split()[0] for sentence in reported} == missing

    def test_problems_name_the_variable_that_was_read(self) -> None:
        plain = {**self.GIVEN, "NEO4J_URI": "bolt://aura.example"}
        del plain["NEO4J_PASSWORD"]

        assert problems(plain) == ("NEO4J_PASSWORD must be set when the graph store is neo4j.",)
        assert problems({**self.GIVEN, "NEO4J_URI": "bolt://aura.example"}) == (
            "NEO4J_URI must use bolt+s:// or neo4j+s:// because its host is not loopback"
            " (EMBED_GRAPH_ALLOW_PLAINTEXT=true allows plain text).",
        )

    def test_one_database_for_both_is_refused_here_too(self) -> None:
        environ = {
            **self.GIVEN,
            "EMBED_QUEUE_STORE": "neo4j",
            "EMBED_QUEUE_URI": self.GIVEN["NEO4J_URI"],
            "EMBED_QUEUE_PASSWORD": "queue-pw-for-tests",
            "EMBED_QUEUE_DATABASE": "people",
        }

        (sentence,) = problems(environ)

        assert sentence.startswith(
            "EMBED_QUEUE_DATABASE must be another database than NEO4J_DATABASE"
        )
