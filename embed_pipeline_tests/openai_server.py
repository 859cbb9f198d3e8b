"""A loopback server that speaks OpenAI's embeddings API, keeps its limits and fails on demand."""

from __future__ import annotations

import select
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

from embed_pipeline_tests.openai_answers import MODELS, Asked, answered, read, refused
from embed_pipeline_tests.openai_answers import tokens_of as tokens_of
from embed_pipeline_tests.openai_answers import vector_for as vector_for
from embed_pipeline_tests.openai_budget import Budget, most_in_any_window
from embed_pipeline_tests.openai_faults import Fault, Reply, error_reply, wrong_key


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRequest:
    """`at` is `time.monotonic()` at arrival; `status` is 0 where nothing was answered."""

    at: float
    status: int
    model: str
    inputs: int
    tokens: int
    dimensions: int | None
    as_base64: bool
    texts: tuple[str, ...]


class OpenAIServer:
    """Use as a context manager; everything may be changed while it runs.

    The budget counts accepted requests and their tokens in a sliding window, answers 429 beyond
    it, and says what is left in `x-ratelimit-*` headers. Faults are used up one per request,
    before `fault_for` is asked; a faulty request costs budget too.

    It speaks OpenAI's URLs and Azure's; `deployments` says which model an Azure deployment is of,
    where its name does not.
    """

    def __init__(
        self,
        *,
        latency: timedelta = timedelta(),
        max_requests: int | None = None,
        max_tokens: int | None = None,
        per: timedelta = timedelta(seconds=60),
        api_key: str | None = None,
        fault_for: Callable[[Sequence[str]], Fault | None] | None = None,
        keep_texts: bool = True,
    ) -> None:
        self.latency = latency
        self.budget = Budget(requests=max_requests, tokens=max_tokens, per=per)
        self.models: Mapping[str, int] = MODELS
        self.deployments: Mapping[str, str] = {}
        self.api_key = api_key
        self.fault_for = fault_for
        self.keep_texts = keep_texts
        self.max_in_flight = 0
        self._in_flight = 0
        self._faults: deque[Fault] = deque()
        self._requests: list[RecordedRequest] = []
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._listener = _Listener(self)
        self._thread = threading.Thread(
            target=self._listener.serve_forever, args=(0.01,), name="openai-server"
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._listener.shutdown()
        self._thread.join()
        self._listener.hang_up()
        self._listener.server_close()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._listener.server_port}/v1"

    @property
    def azure_endpoint(self) -> str:
        return f"http://127.0.0.1:{self._listener.server_port}"

    @property
    def requests(self) -> list[RecordedRequest]:
        """A copy, in the order in which the requests were dealt with."""
        with self._lock:
            return list(self._requests)

    def most_requests_in(self, window: timedelta) -> int:
        """The most requests that arrived within any such time, refused ones too."""
        return most_in_any_window([request.at for request in self.requests], window)

    def inject(self, *faults: Fault) -> None:
        """The next requests meet these, one each."""
        with self._lock:
            self._faults.extend(faults)

    def forget(self) -> None:
        """No requests seen, no budget used, no faults waiting."""
        self.budget.forget()
        with self._lock:
            self.max_in_flight = 0
            self._faults.clear()
            self._requests.clear()

    def handle(self, asked: Asked | None, key: str) -> tuple[Reply | None, Fault]:
        """The reply, or None for silence, and the fault that shapes how it is sent."""
        arrived = time.monotonic()
        with self._lock:
            self._in_flight += 1
            self.max_in_flight = max(self.max_in_flight, self._in_flight)
        try:
            reply, fault = self._decide(asked, key, arrived)
            self.rest(self.latency)
            if asked is not None:
                self._record(asked, arrived, reply)
            return reply, fault
        finally:
            with self._lock:
                self._in_flight -= 1

    def wait_for(self, connection: socket.socket) -> None:
        """Until the client hangs up or the server closes."""
        while not self._closing.is_set():
            readable, _, _ = select.select([connection], [], [], 0.01)
            if readable:
                return

    def rest(self, duration: timedelta) -> None:
        """For so long, or until the server closes."""
        self._closing.wait(duration.total_seconds())

    def _decide(self, asked: Asked | None, key: str, at: float) -> tuple[Reply | None, Fault]:
        if self.api_key is not None and key != self.api_key:
            return wrong_key(key), Fault()
        if asked is None:
            return error_reply(400, "'$.input' is invalid.", param="input"), Fault()
        asked = replace(asked, model=self.deployments.get(asked.model, asked.model))
        over_budget = self.budget.refused(asked.tokens, at)
        if over_budget is not None:
            return over_budget, Fault()
        fault = self._next_fault(asked.texts)
        if fault.hang or fault.drop:
            return None, fault
        reply = fault.reply or refused(asked, self.models) or answered(asked, fault, self.models)
        return replace(reply, headers={**self.budget.headers(at), **reply.headers}), fault

    def _next_fault(self, texts: Sequence[str]) -> Fault:
        with self._lock:
            if self._faults:
                return self._faults.popleft()
        return (self.fault_for(texts) if self.fault_for else None) or Fault()

    def _record(self, asked: Asked, at: float, reply: Reply | None) -> None:
        request = RecordedRequest(
            at=at,
            status=0 if reply is None else reply.status,
            model=asked.model,
            inputs=len(asked.texts),
            tokens=asked.tokens,
            dimensions=asked.dimensions,
            as_base64=asked.as_base64,
            texts=asked.texts if self.keep_texts else (),
        )
        with self._lock:
            self._requests.append(request)


class _Listener(ThreadingHTTPServer):
    daemon_threads = False  # so that closing waits for them
    request_queue_size = 128

    def __init__(self, api: OpenAIServer) -> None:
        self.api = api
        self._connections: set[Any] = set()
        super().__init__(("127.0.0.1", 0), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        """Ends the threads that wait for the next request of a kept-alive connection."""
        for connection in self._connections.copy():
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A client that gave up is what some tests are about.
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Listener

    def do_POST(self) -> None:
        asked = read(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        deployment = _deployment(self.path)
        if deployment is not None:
            key = self.headers.get("api-key", "")
            asked = None if asked is None else replace(asked, model=deployment)
        elif self.path == "/v1/embeddings":
            key = self.headers.get("Authorization", "").removeprefix("Bearer ")
        else:
            self._send(error_reply(404, f"Invalid URL (POST {self.path})"), Fault())
            return
        reply, fault = self.server.api.handle(asked, key)
        if fault.hang:
            self.server.api.wait_for(self.connection)
        if reply is None:
            self.close_connection = True
        else:
            self._send(reply, fault)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """The record is `requests`."""

    def _send(self, reply: Reply, fault: Fault) -> None:
        headers = {
            "Date": self.date_time_string(),
            "Content-Type": reply.content_type,
            "Content-Length": str(len(reply.body)),
            **reply.headers,
        }
        lines = [f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        answer = "\r\n".join([*lines, "", ""]).encode("latin-1") + reply.body
        if fault.cut:
            self.close_connection = True
            answer = answer[: -len(reply.body) // 2]
        if fault.trickle:
            self._trickle(answer, body=len(reply.body))
            return
        # One write: a second one would wait for the client's delayed acknowledgement.
        self.wfile.write(answer)

    def _trickle(self, answer: bytes, *, body: int) -> None:
        """Twenty pieces, each in good time: it is all of them that take long."""
        piece = -(-body // 20)
        self.wfile.write(answer[:-body])
        for start in range(len(answer) - body, len(answer), piece):
            self.server.api.rest(timedelta(seconds=0.1))
            self.wfile.write(answer[start : start + piece])


def _deployment(path: str) -> str | None:
    """The deployment that a URL of Azure names; None for all others, and without a version."""
    url = urlsplit(path)
    match url.path.split("/"):
        case ["", "openai", "deployments", deployment, "embeddings"] if "api-version" in parse_qs(
            url.query
        ):
            return unquote(deployment)
        case _:
            return None
