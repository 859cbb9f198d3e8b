"""A small budget for several processes, and whether a server saw more than it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from embed_pipeline_tests.openai_server import OpenAIServer

REQUESTS, INTERVAL = 10, timedelta(seconds=2)
SLACK = timedelta(seconds=0.5)
"""Between a grant and its request's arrival, on a busy machine."""
ENTITIES = 45
VARIABLES = {
    "EMBEDDING_DIMENSIONS": "16",
    "EMBEDDING_MAX_INPUTS": "1",
    "EMBEDDING_RATE_LIMIT_TOKENS": str(REQUESTS),
    "EMBEDDING_RATE_LIMIT_INTERVAL": str(INTERVAL // timedelta(milliseconds=1)),
}


def assert_kept(server: OpenAIServer) -> None:
    arrivals = [request.at for request in server.requests]
    assert len(arrivals) == ENTITIES, "one text each, none paid twice"
    assert {request.status for request in server.requests} == {200}
    assert most_within(arrivals, INTERVAL - SLACK) <= REQUESTS


def most_within(times: Sequence[float], window: timedelta) -> int:
    times = sorted(times)
    length = window.total_seconds()
    return max(sum(start <= time < start + length for time in times) for start in times)
