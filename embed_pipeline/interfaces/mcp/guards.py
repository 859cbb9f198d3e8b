"""What stands before the SDK's application of HTTP: the token, the rate, and ids that are none."""

from __future__ import annotations

import hmac
from collections import deque
from contextlib import suppress

from mcp import types
from pydantic import ValidationError
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from embed_pipeline.interfaces.mcp.refusals import id_refusal
from embed_pipeline.ports.clock import Clock, SystemClock
from embed_pipeline.telemetry import emit


class TokenCheck:
    """Lets requests with the token through, and not more of them than the rate allows."""

    def __init__(self, app: ASGIApp, *, token: str, rate: int, clock: Clock | None = None) -> None:
        self._app, self._token, self._rate = app, token.encode(), rate
        self._clock = clock or SystemClock()
        self._times: deque[float] = deque()
        """When the requests of the last minute came."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            refusal = self._refusal(scope["method"], Headers(scope=scope))
            if refusal is not None:
                client = scope.get("client") or ("unknown",)
                emit("request.refused", reason=bytes(refusal.body).decode(), client=client[0])
                return await refusal(scope, receive, send)
        return await self._app(scope, receive, send)

    def _refusal(self, method: str, headers: Headers) -> PlainTextResponse | None:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        # In constant time, or the time of the answer would betray the token bit by bit.
        if scheme.lower() != "bearer" or not hmac.compare_digest(token.encode(), self._token):
            return PlainTextResponse(
                "no valid token in the header Authorization: Bearer …",
                status_code=401,
                headers={"WWW-Authenticate": "Bearer"},
            )
        if method != "POST":
            # A stream of the server's own messages would stay open, and empty: it has none.
            return PlainTextResponse(
                "only POST is served", status_code=405, headers={"Allow": "POST"}
            )
        now = self._clock.monotonic()
        while self._times and now - self._times[0] >= 60:
            self._times.popleft()
        if len(self._times) >= self._rate:
            wait = max(1, round(60 - (now - self._times[0])))
            return PlainTextResponse(
                f"more than {self._rate} requests in a minute, wait {wait} s",
                status_code=429,
                headers={"Retry-After": str(wait)},
            )
        self._times.append(now)
        return None


class IdCheck:
    """Answers a request whose id is no id: the SDK would take it for a notification.

    The body comes in one piece, because the limit of its size has read it before.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        first = await receive()
        body = first.get("body", b"")
        with suppress(ValidationError):  # which the SDK answers
            message = types.jsonrpc_message_adapter.validate_json(body, by_name=False)
            if refusal := id_refusal(body, message):
                content = refusal.model_dump_json(by_alias=True, exclude_unset=True)
                answer = Response(content, status_code=400, media_type="application/json")
                return await answer(scope, receive, send)
        pending = [first]

        async def replay() -> Message:
            return pending.pop() if pending else await receive()

        return await self._app(scope, replay, send)
