"""From the SDK's errors to ours; the server's words are shortened and never show the key."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import openai

from embed_pipeline.errors import (
    CredentialsRefused,
    EmbedPipelineError,
    InputRefused,
    InputTooLarge,
    MalformedResponse,
    ModelNotFound,
    ProviderTimeout,
    ProviderUnavailable,
    QuotaExhausted,
    RateLimited,
    SettingsRefused,
)
from embed_pipeline.providers.openai.headers import reset_after, retry_after
from embed_pipeline.telemetry.redaction import redact

_DETAIL_LENGTH = 200
# Shorter keys are placeholders for servers without keys, and parts of ordinary words.
_SHORTEST_KEY = 8
_BY_STATUS: Mapping[int, type[EmbedPipelineError]] = {
    400: InputRefused,
    401: CredentialsRefused,
    402: QuotaExhausted,
    403: CredentialsRefused,
    404: ModelNotFound,
    413: InputTooLarge,
    422: InputRefused,
}
_BY_CODE: Mapping[str, type[EmbedPipelineError]] = {
    "insufficient_quota": QuotaExhausted,
    "billing_not_active": QuotaExhausted,
    "billing_hard_limit_reached": QuotaExhausted,
    "access_terminated": CredentialsRefused,
    "account_deactivated": CredentialsRefused,
}
"""Only the owner of the account can end these. The status is 429 for most of them, 400 for one."""

_SETTINGS = frozenset({"model", "dimensions", "encoding_format"})
"""The parameters beside the texts; a refusal that names one is not the fault of a text."""


_MOVED = frozenset({301, 308})
"""Permanent redirects. Temporary ones are treated like a server that is away."""


def translated(
    exc: openai.OpenAIError, *, model: str, api_key: str, timeout: timedelta
) -> EmbedPipelineError:
    """Our error for it. Secrets are cut from the SDK's own too: it is printed as the cause."""
    detail = _presentable(_detail(exc), api_key)
    exc.args = (detail,)
    match exc:
        case openai.APITimeoutError():
            return ProviderTimeout(f"{model} did not answer within {timeout.total_seconds():g} s.")
        case openai.APIResponseValidationError():
            return MalformedResponse(f"{model} sent an unreadable answer: {detail}")
        case openai.APIStatusError():
            return _for_status(exc, f"{model} answered {exc.status_code}: {detail}")
        case _:
            return ProviderUnavailable(f"{model} cannot be reached: {detail}")


def _presentable(detail: str, key: str) -> str:
    # The key is cut before the length: half a key would not be recognised.
    if len(key) >= _SHORTEST_KEY:
        detail = detail.replace(key, "[key]")
    line = " ".join(redact(detail).split())
    return line if len(line) <= _DETAIL_LENGTH else f"{line[: _DETAIL_LENGTH - 1]}…"


def _detail(exc: openai.OpenAIError) -> str:
    """The message of the server or the network; an HTML page is no message."""
    if not isinstance(exc, openai.APIStatusError):
        return str(exc.__cause__ or exc)
    body: Any = exc.body
    said = body.get("message") if isinstance(body, Mapping) else body
    if isinstance(said, str) and said.strip() and not said.lstrip().startswith("<"):
        return said
    return exc.response.reason_phrase or "no reason given"


def _for_status(exc: openai.APIStatusError, message: str) -> EmbedPipelineError:
    # The SDK passes on what the server sent, which need not be a string as its types say.
    code, kind, param = (
        said if isinstance(said, str) else "" for said in (exc.code, exc.type, exc.param)
    )
    by_code = _BY_CODE.get(code) or _BY_CODE.get(kind)
    if by_code is not None:
        return by_code(message)
    if exc.status_code == 429:
        return _for_too_many(exc, message)
    if exc.status_code in _MOVED:
        return SettingsRefused(f"{message} (redirects are not followed: correct the base URL)")
    if exc.status_code in (400, 422) and param in _SETTINGS:
        return SettingsRefused(f"{message} (it names {param}, so it is not the fault of a text)")
    return _BY_STATUS.get(exc.status_code, ProviderUnavailable)(message)


def _for_too_many(exc: openai.APIStatusError, message: str) -> EmbedPipelineError:
    if "request too large" in message.lower():
        # More tokens than a whole minute allows: waiting does not help, halving does.
        return InputTooLarge(message)
    headers = exc.response.headers
    wait = retry_after(headers)
    return RateLimited(message, retry_after=reset_after(headers) if wait is None else wait)
