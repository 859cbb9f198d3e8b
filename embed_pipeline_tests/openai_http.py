"""The loopback server asked by raw HTTP, without any SDK."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

from embed_pipeline_tests.openai_server import OpenAIServer

MODEL = "text-embedding-3-small"
Answer = tuple[int, dict[str, str], Any]


def connect(server: OpenAIServer, timeout: float = 30) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(urlsplit(server.base_url).netloc, timeout=timeout)


def post(connection: http.client.HTTPConnection, **fields: object) -> Answer:
    body = json.dumps({"model": MODEL, **fields})
    connection.request("POST", "/v1/embeddings", body, {"Authorization": "Bearer sk-test"})
    response = connection.getresponse()
    return response.status, dict(response.headers), json.loads(response.read())


def ask(server: OpenAIServer, **fields: object) -> Answer:
    connection = connect(server)
    try:
        return post(connection, **fields)
    finally:
        connection.close()
