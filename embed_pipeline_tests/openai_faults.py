"""What can go wrong between us and OpenAI, as values a test hands to the server."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Item = tuple[int, npt.NDArray[np.float32]]
"""An embedding and the index it is sent with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One of: another reply, the right reply with other items, or none at all."""

    reply: Reply | None = None
    change: Callable[[Sequence[Item]], Sequence[Item]] | None = None
    hang: bool = False
    """Stay silent until the client gives up or the server closes."""
    drop: bool = False
    """Close the connection instead of answering."""
    cut: bool = False
    """Close the connection in the middle of the right answer."""
    trickle: bool = False
    """Send the reply's body a little at a time."""


def error_reply(
    status: int,
    message: str,
    *,
    kind: str = "invalid_request_error",
    code: str | None = None,
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """An error as OpenAI words it."""
    error = {"message": message, "type": kind, "param": param, "code": code}
    return Reply(status=status, body=json.dumps({"error": error}).encode(), headers=headers or {})


def refusal(
    status: int, message: str = "The request was refused.", *, param: str | None = None
) -> Fault:
    return Fault(reply=error_reply(status, message, param=param))


def rate_limited(headers: Mapping[str, str] | None = None) -> Fault:
    message = "Rate limit reached for text-embedding-3-small on requests per min (RPM): Limit 3."
    return Fault(
        reply=error_reply(
            429, message, kind="requests", code="rate_limit_exceeded", headers=headers
        )
    )


def request_too_large() -> Fault:
    message = (
        "Request too large for text-embedding-3-small on tokens per min (TPM): "
        "Limit 40000, Requested 52000. The input tokens must be reduced to run successfully."
    )
    return Fault(reply=error_reply(429, message, kind="tokens", code="rate_limit_exceeded"))


def quota_exhausted() -> Fault:
    message = "You exceeded your current quota, please check your plan and billing details."
    return Fault(
        reply=error_reply(429, message, kind="insufficient_quota", code="insufficient_quota")
    )


def account_stopped(status: int, *, kind: str, code: str | None = None) -> Fault:
    """Not paid for, or closed: in its `code`, its `type` or both."""
    return Fault(reply=error_reply(status, "The account was stopped.", kind=kind, code=code))


def oddly_refused(status: int, **error: object) -> Fault:
    """By a compatible server, whose errors may hold anything."""
    body = json.dumps({"error": {"message": "bad", **error}}).encode()
    return Fault(reply=Reply(status=status, body=body))


def credentials_refused(echoed_key: str = "sk-***") -> Fault:
    return Fault(reply=wrong_key(echoed_key))


def wrong_key(echoed_key: str) -> Reply:
    return error_reply(401, f"Incorrect API key provided: {echoed_key}.", code="invalid_api_key")


def model_not_found(model: str = "text-embedding-3-small") -> Fault:
    return Fault(reply=unknown_model(model))


def unknown_model(model: str) -> Reply:
    message = f"The model `{model}` does not exist or you do not have access to it."
    return error_reply(404, message, code="model_not_found")


def server_error(status: int = 500) -> Fault:
    message = "The server had an error while processing your request."
    return Fault(reply=error_reply(status, message, kind="server_error"))


def html_page(status: int = 502) -> Fault:
    """What a proxy in between says."""
    body = b"<html><head><title>Bad Gateway</title></head><body>cloud</body></html>"
    return Fault(reply=Reply(status=status, body=body, content_type="text/html"))


def body_of(body: bytes) -> Fault:
    """A success that holds this."""
    return Fault(reply=Reply(status=200, body=body))


def _without_last(items: Sequence[Item]) -> Sequence[Item]:
    return items[:-1]


def _with_one_more(items: Sequence[Item]) -> Sequence[Item]:
    return [*items, (len(items), items[0][1])]


def _with_first_row_of(number: float) -> Callable[[Sequence[Item]], Sequence[Item]]:
    def change(items: Sequence[Item]) -> Sequence[Item]:
        return [(0, np.full_like(items[0][1], number)), *items[1:]]

    return change


def _shuffled(items: Sequence[Item]) -> Sequence[Item]:
    return list(reversed(items))


def _shorter(items: Sequence[Item]) -> Sequence[Item]:
    return [(index, vector[:-1]) for index, vector in items]


def _all_first(items: Sequence[Item]) -> Sequence[Item]:
    return [(0, vector) for _, vector in items]


HANG = Fault(hang=True)
DROP = Fault(drop=True)
CUT = Fault(cut=True)
TRICKLE = Fault(trickle=True)
MISSING_ROW = Fault(change=_without_last)
EXTRA_ROW = Fault(change=_with_one_more)
NAN_ROW = Fault(change=_with_first_row_of(float("nan")))
ZERO_ROW = Fault(change=_with_first_row_of(0.0))
SWAPPED_ROWS = Fault(change=_shuffled)
"""Out of order, but each with its right index: no fault of the server's."""
WRONG_DIMENSION = Fault(change=_shorter)
SAME_INDEX = Fault(change=_all_first)
