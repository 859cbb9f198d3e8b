"""The server that other tests trust: raw HTTP, no SDK."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from urllib.parse import urlsplit

import numpy as np
import pytest

from embed_pipeline_tests import openai_faults as faults
from embed_pipeline_tests.openai_http import MODEL, ask, connect, post
from embed_pipeline_tests.openai_server import OpenAIServer, tokens_of, vector_for


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as opened:
        yield opened


def test_floats_are_the_vectors_of_their_texts(server: OpenAIServer) -> None:
    status, _, answer = ask(server, input=["one", "two"], dimensions=8)

    assert status == 200
    assert [item["index"] for item in answer["data"]] == [0, 1]
    rows = np.array([item["embedding"] for item in answer["data"]], np.float32)
    assert np.array_equal(rows, [vector_for("one", 8), vector_for("two", 8)])


def test_base64_holds_the_same_numbers(server: OpenAIServer) -> None:
    _, _, answer = ask(server, input="one", encoding_format="base64")

    row = np.frombuffer(base64.b64decode(answer["data"][0]["embedding"]), "<f4")
    assert np.array_equal(row, vector_for("one", 1536))


def test_vectors_are_unit_length_and_differ_between_texts() -> None:
    vectors = np.array([vector_for(f"text {number}", 64) for number in range(500)])

    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert len(np.unique(vectors, axis=0)) == 500


def test_usage_counts_four_bytes_as_a_token(server: OpenAIServer) -> None:
    _, _, answer = ask(server, input=["12345", "é", "x"])

    assert answer["usage"] == {"prompt_tokens": 4, "total_tokens": 4}
    assert [tokens_of(text) for text in ("12345", "é", "x")] == [2, 1, 1]


@pytest.mark.parametrize(
    ("fields", "status", "words"),
    [
        ({"input": ["x"] * 2049}, 400, "got 2049"),
        ({"input": []}, 400, "got 0"),
        ({"input": ["fine", ""]}, 400, "input[1]"),
        ({"input": ["fine", "a b " * 4097]}, 400, "input[1]"),
        ({"input": ["word " * 250_000]}, 400, "maximum context length"),
        ({"input": ["x" * 4 * 8000] * 38}, 400, "max 300000 tokens"),
        ({"input": ["a b " * 4000] * 38}, 400, "max 300000 tokens"),
        ({"input": 5}, 400, "$.input"),
        ({"input": "x", "dimensions": 1537}, 400, "dimensions"),
        ({"input": "x", "dimensions": 8, "model": "text-embedding-ada-002"}, 400, "dimensions"),
        ({"input": "x", "model": "gpt-9"}, 404, "gpt-9"),
    ],
)
def test_openais_limits_are_enforced(
    server: OpenAIServer, fields: dict[str, object], status: int, words: str
) -> None:
    answered, _, answer = ask(server, **fields)

    assert answered == status
    assert words in answer["error"]["message"]
    assert set(answer["error"]) == {"message", "type", "param", "code"}


@pytest.mark.parametrize(
    "texts", [["x"] * 2048, [" a" * 8192], ["x" * 4 * 7500] * 40], ids=["count", "one", "sum"]
)
def test_exactly_the_limit_is_allowed(server: OpenAIServer, texts: list[str]) -> None:
    assert ask(server, input=texts, dimensions=2)[0] == 200


def test_one_connection_serves_many_requests_without_delay(server: OpenAIServer) -> None:
    connection = connect(server)
    post(connection, input="warm")
    opened = connection.sock
    started = time.monotonic()

    for number in range(20):
        post(connection, input=f"text {number}", encoding_format="base64")

    assert time.monotonic() - started < 0.4
    assert connection.sock is opened
    connection.close()


def test_requests_are_recorded(server: OpenAIServer) -> None:
    before = time.monotonic()
    ask(server, input=["one", "two"], dimensions=8)
    ask(server, input=[""])

    good, bad = server.requests
    assert before < good.at < bad.at < time.monotonic()
    assert (good.status, good.inputs, good.tokens, good.dimensions) == (200, 2, 2, 8)
    assert (good.model, good.texts) == (MODEL, ("one", "two"))
    assert bad.status == 400


def test_texts_are_forgotten_on_request(server: OpenAIServer) -> None:
    server.keep_texts = False

    ask(server, input="secret")

    assert server.requests[0].texts == ()
    assert server.requests[0].inputs == 1


def test_a_wrong_key_is_refused_where_one_is_asked_for(server: OpenAIServer) -> None:
    server.api_key = "sk-other"

    status, _, answer = ask(server, input="x")

    assert status == 401
    assert answer["error"]["code"] == "invalid_api_key"


def test_latency_is_waited_by_all_requests_at_once(server: OpenAIServer) -> None:
    server.latency = timedelta(seconds=0.2)
    started = time.monotonic()

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(lambda number: ask(server, input=f"{number}"), range(5)))

    assert 0.2 <= time.monotonic() - started < 0.8
    assert server.max_in_flight == 5


@pytest.mark.parametrize(
    ("path", "key", "status"),
    [
        ("/openai/deployments/mine/embeddings?api-version=2024-10-21", "sk-test", 200),
        (f"/openai/deployments/{MODEL}/embeddings?api-version=2024-10-21", "sk-test", 200),
        ("/openai/deployments/other/embeddings?api-version=2024-10-21", "sk-test", 404),
        ("/openai/deployments/mine/embeddings?api-version=2024-10-21", "sk-wrong", 401),
        ("/openai/deployments/mine/embeddings", "sk-test", 404),
        ("/openai/embeddings?api-version=2024-10-21", "sk-test", 404),
    ],
)
def test_azures_urls_and_key_are_understood(
    server: OpenAIServer, path: str, key: str, status: int
) -> None:
    server.api_key = "sk-test"
    server.deployments = {"mine": MODEL}
    connection = connect(server)

    connection.request("POST", path, json.dumps({"model": "any", "input": "x"}), {"api-key": key})
    response = connection.getresponse()
    response.read()

    connection.close()
    assert response.status == status


def test_other_models_can_be_served_but_take_no_dimensions(server: OpenAIServer) -> None:
    server.models = {"BAAI/bge-m3": 8}

    status, _, answer = ask(server, model="BAAI/bge-m3", input="x")
    refused, _, _ = ask(server, model="BAAI/bge-m3", input="x", dimensions=8)

    assert (status, len(answer["data"][0]["embedding"])) == (200, 8)
    assert refused == 400


def test_faults_are_used_up_one_per_request(server: OpenAIServer) -> None:
    server.inject(faults.rate_limited({"Retry-After": "3"}), faults.server_error())

    first = ask(server, input="x")
    statuses = [ask(server, input="x")[0] for _ in range(2)]

    assert (first[0], first[1]["Retry-After"]) == (429, "3")
    assert statuses == [500, 200]


def test_a_poison_text_spoils_every_request_it_is_in(server: OpenAIServer) -> None:
    server.fault_for = lambda texts: faults.refusal(400) if "poison" in texts else None

    statuses = [ask(server, input=texts)[0] for texts in (["good"], ["good", "poison"], ["good"])]

    assert statuses == [200, 400, 200]


def test_swapped_rows_keep_their_right_index(server: OpenAIServer) -> None:
    server.inject(faults.SWAPPED_ROWS)

    _, _, answer = ask(server, input=["one", "two"], dimensions=8)

    assert [item["index"] for item in answer["data"]] == [1, 0]
    assert np.allclose(answer["data"][1]["embedding"], vector_for("one", 8))


@pytest.mark.parametrize("fault", [faults.DROP, faults.CUT], ids=["drop", "cut"])
def test_a_dropped_connection_gives_no_whole_answer(
    server: OpenAIServer, fault: faults.Fault
) -> None:
    server.inject(fault)

    with pytest.raises((http.client.HTTPException, ConnectionError)):
        ask(server, input="x")


def test_hanging_ends_when_the_client_gives_up(server: OpenAIServer) -> None:
    server.inject(faults.HANG)
    connection = connect(server, timeout=0.1)

    with pytest.raises(TimeoutError):
        post(connection, input="x")
    connection.close()

    assert server.requests[0].status == 0


def test_closing_releases_hanging_and_idle_clients_and_leaves_no_thread() -> None:
    before = threading.active_count()
    with OpenAIServer() as server:
        idle = connect(server)
        post(idle, input="x")
        hanging = connect(server, timeout=30)
        server.inject(faults.HANG)
        hanging.request("POST", "/v1/embeddings", json.dumps({"model": MODEL, "input": "x"}))
        while len(server.requests) < 2:
            time.sleep(0.005)
        port = urlsplit(server.base_url).port
        started = time.monotonic()

    assert time.monotonic() - started < 1
    assert threading.active_count() == before
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        hanging.getresponse()
    with pytest.raises(ConnectionError):
        socket.create_connection(("127.0.0.1", port or 0), timeout=1)
    idle.close()
    hanging.close()
