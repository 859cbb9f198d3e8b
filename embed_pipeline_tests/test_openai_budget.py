"""The budget of the server that other tests trust."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta

import pytest

from embed_pipeline_tests.openai_budget import Budget, most_in_any_window
from embed_pipeline_tests.openai_http import ask
from embed_pipeline_tests.openai_server import OpenAIServer


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as opened:
        yield opened


def test_requests_over_the_budget_wait_for_the_window(server: OpenAIServer) -> None:
    server.budget = Budget(requests=2, per=timedelta(seconds=0.3))

    statuses = [ask(server, input="x")[0] for _ in range(3)]
    _, headers, answer = ask(server, input="x")
    time.sleep(0.3)
    statuses.append(ask(server, input="x")[0])

    assert statuses == [200, 200, 429, 200]
    assert headers["Retry-After"] == "1"
    assert answer["error"]["code"] == "rate_limit_exceeded"


def test_tokens_over_the_budget_wait_for_the_window(server: OpenAIServer) -> None:
    server.budget = Budget(tokens=10, per=timedelta(seconds=30))

    answers = [ask(server, input="x" * 4 * tokens) for tokens in (6, 5, 11, 4)]

    assert [status for status, _, _ in answers] == [200, 429, 429, 200]
    assert answers[1][1]["Retry-After"] == "30"
    assert "Request too large" in answers[2][2]["error"]["message"]
    assert "Retry-After" not in answers[2][1]


def test_what_is_left_of_the_budget_is_told(server: OpenAIServer) -> None:
    server.budget = Budget(requests=2, tokens=100, per=timedelta(seconds=30))

    told = [
        {name: value for name, value in headers.items() if name.startswith("x-ratelimit-")}
        for _, headers, _ in (ask(server, input="x" * 40) for _ in range(3))
    ]

    assert [headers["x-ratelimit-remaining-requests"] for headers in told] == ["1", "0", "0"]
    assert [headers["x-ratelimit-remaining-tokens"] for headers in told] == ["90", "80", "80"]
    assert {headers["x-ratelimit-limit-requests"] for headers in told} == {"2"}
    resets = [int(headers["x-ratelimit-reset-tokens"].removesuffix("ms")) for headers in told]
    assert all(20_000 < reset <= 30_000 for reset in resets)


def test_without_a_budget_nothing_is_told_of_it(server: OpenAIServer) -> None:
    _, headers, _ = ask(server, input="x")

    assert not [name for name in headers if name.startswith("x-ratelimit-")]


def test_the_fullest_window_is_known() -> None:
    moments = [0.0, 4.0, 5.0, 5.5, 6.0, 9.0, 20.0]

    assert most_in_any_window(moments, timedelta(seconds=2)) == 4
    assert most_in_any_window(moments, timedelta(seconds=1)) == 3
    assert most_in_any_window(moments, timedelta(seconds=60)) == 7
    assert most_in_any_window([], timedelta(seconds=60)) == 0


def test_requests_are_counted_by_their_fullest_window(server: OpenAIServer) -> None:
    server.budget = Budget(requests=2)
    for _ in range(3):
        ask(server, input="x")

    assert server.most_requests_in(timedelta(seconds=60)) == 3
    assert server.most_requests_in(timedelta(0)) == 1
