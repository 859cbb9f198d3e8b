"""A small budget for several processes, and whether more arrived at the server in any window."""

from __future__ import annotations

from datetime import timedelta

from embed_pipeline_tests.openai_server import OpenAIServer

REQUESTS, INTERVAL = 5, timedelta(seconds=2)
ENTITIES = 12
VARIABLES = {
    "EMBEDDING_DIMENSIONS": "16",
    "EMBEDDING_MAX_INPUTS": "1",
    "EMBEDDING_RATE_LIMIT_TOKENS": str(REQUESTS),
    "EMBEDDING_RATE_LIMIT_INTERVAL": str(INTERVAL // timedelta(milliseconds=1)),
}


def assert_kept(server: OpenAIServer) -> None:
    requests = server.requests
    assert len(requests) == ENTITIES, "one text each, none paid twice"
    assert {request.status for request in requests} == {200}
    assert server.most_requests_in(INTERVAL) <= REQUESTS
