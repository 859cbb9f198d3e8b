"""The server that other tests trust answers as OpenAI does: raw HTTP, no SDK."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import urlsplit

import numpy as np
import pytest

from embed_pipeline_tests import openai_faults as faults
from embed_pipeline_tests.openai_budget import Budget, most_in_any_window
from embed_pipeline_tests.openai_http import MODEL, ask, connect, post
from embed_pipeline_tests.openai_server import OpenAIServer, vector_for


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


def test_faults_are_used_up_one_per_request(server: OpenAIServer) -> None:
    server.inject(faults.rate_limited({"Retry-After": "3"}), faults.server_error())

    first = ask(server, input="x")
    statuses = [ask(server, input="x")[0] for _ in range(2)]

    assert (first[0], first[1]["Retry-After"]) == (429, "3")
    assert statuses == [500, 200]


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


def test_requests_over_the_budget_wait_for_the_window(server: OpenAIServer) -> None:
    server.budget = Budget(requests=2, tokens=100, per=timedelta(seconds=0.3))

    answers = [ask(server, input="x" * 40) for _ in range(3)]
    time.sleep(0.3)
    answers.append(ask(server, input="x"))

    assert [status for status, _, _ in answers] == [200, 200, 429, 200]
    assert answers[2][1]["Retry-After"] == "1"
    assert answers[2][2]["error"]["code"] == "rate_limit_exceeded"
    left = [headers["x-ratelimit-remaining-tokens"] for _, headers, _ in answers[:3]]
    assert left == ["90", "80", "80"]


def test_the_fullest_window_is_known() -> None:
    times = [0.0, 4.0, 5.0, 5.5, 6.0, 9.0, 20.0]

    assert most_in_any_window(times, timedelta(seconds=2)) == 4
    assert most_in_any_window(times, timedelta(seconds=60)) == 7
    assert most_in_any_window([], timedelta(seconds=60)) == 0
