"""Who makes the vectors, with which model, and how much may be asked of it."""

from __future__ import annotations

from typing import Annotated

from pydantic import SecretStr

from embed_pipeline.settings.endpoints import carries_credentials, endpoint_of
from embed_pipeline.settings.findings import Findings
from embed_pipeline.settings.kinds import Address, ApiKey, Flag, OneOf, Pattern, Whole
from embed_pipeline.settings.queue import DAY_MS, milliseconds
from embed_pipeline.settings.shape import (
    Environment,
    ProviderName,
    ProviderSettings,
    QueueSettings,
)
from embed_pipeline.settings.variables import Variables, setting

DEFAULT_PROVIDER = {
    Environment.LOCAL: ProviderName.LOCAL,
    Environment.TEST: ProviderName.MOCK,
    Environment.PRODUCTION: ProviderName.OPENAI,
}
DEFAULT_MODEL = {
    ProviderName.OPENAI: ("text-embedding-3-small", 1536),
    ProviderName.LOCAL: ("l2_supercat", 256),
    ProviderName.MOCK: ("mock", 64),
}
REMOTE = frozenset({ProviderName.OPENAI})
DEFAULT_REMOTE_REQUESTS = 20
DEFAULT_TIMEOUT_MS = 60_000


class ProviderVariables(Variables):
    provider: Annotated[ProviderName | None, OneOf(ProviderName)] = setting(
        "EMBEDDING_PROVIDER",
        "Who makes the vectors. A key alone never selects openai.",
        shown="local: local, test: mock, production: openai",
    )
    model: Annotated[
        str | None, Pattern("a model name of up to 128 characters without spaces", "[!-~]{1,128}")
    ] = setting(
        "EMBEDDING_MODEL",
        "The provider's model.",
        shown="openai: text-embedding-3-small, local: l2_supercat, mock: mock",
    )
    dimensions: Annotated[int | None, Whole("dimensions", 1, 4096)] = setting(
        "EMBEDDING_DIMENSIONS",
        "The length of a vector.",
        shown="openai: 1536, local: 256, mock: 64",
    )
    api_key: Annotated[SecretStr | None, ApiKey()] = setting(
        "OPENAI_API_KEY",
        "The key for openai. Without it production refuses to start; elsewhere the local provider "
        "steps in.",
    )
    base_url: Annotated[
        str | None, Address("an https URL without credentials, query or fragment; http to loopback")
    ] = setting("OPENAI_BASE_URL", "Another server that speaks OpenAI's protocol.")
    allow_plaintext: Annotated[bool, Flag()] = setting(
        "OPENAI_ALLOW_PLAINTEXT",
        "Allow http to OPENAI_BASE_URL on another machine: key and texts travel readable.",
        default=False,
    )
    timeout_ms: Annotated[int | None, Whole("milliseconds", 100, DAY_MS)] = setting(
        "EMBEDDING_TIMEOUT",
        "How long one request may take; less than half of the lock duration.",
        shown=f"{DEFAULT_TIMEOUT_MS}, or 0.4 of the lock duration where that is less",
    )
    max_requests: Annotated[int | None, Whole("requests", 1, 1_000_000)] = setting(
        "EMBEDDING_RATE_LIMIT_TOKENS",
        "How many requests all workers together may send per interval.",
        shown=f"openai: {DEFAULT_REMOTE_REQUESTS}, local and mock: without limit",
    )
    interval_ms: Annotated[int, Whole("milliseconds", 1000, DAY_MS)] = setting(
        "EMBEDDING_RATE_LIMIT_INTERVAL",
        "The interval of both limits.",
        default=60_000,
    )
    max_tokens: Annotated[int | None, Whole("tokens", 1, 1_000_000_000)] = setting(
        "EMBEDDING_TOKEN_BUDGET",
        "How many API tokens all workers together may spend per interval.",
        shown="without limit",
    )


def provider_settings(
    given: ProviderVariables, environment: Environment, queue: QueueSettings, findings: Findings
) -> ProviderSettings:
    requested = given.provider or DEFAULT_PROVIDER[environment]
    name = _working_provider(given, requested, environment, findings)
    if name is ProviderName.OPENAI:
        _check_base_url(given, findings)
    if name is ProviderName.MOCK and environment is Environment.PRODUCTION:
        findings.note("EMBEDDING_PROVIDER is mock in production: its vectors mean nothing.")
    model, dimensions = DEFAULT_MODEL[name]
    if name is requested:
        model, dimensions = given.model or model, given.dimensions or dimensions
    remote_default = DEFAULT_REMOTE_REQUESTS if name in REMOTE else None
    return ProviderSettings(
        name=name,
        requested=requested,
        model=model,
        dimensions=dimensions,
        api_key=given.api_key,
        base_url=given.base_url,
        timeout=milliseconds(_timeout_ms(given, queue, findings)),
        max_requests=given.max_requests or remote_default,
        max_tokens=given.max_tokens,
        interval=milliseconds(given.interval_ms),
    )


def _working_provider(
    given: ProviderVariables,
    requested: ProviderName,
    environment: Environment,
    findings: Findings,
) -> ProviderName:
    if requested is not ProviderName.OPENAI or given.api_key is not None:
        return requested
    if environment is Environment.PRODUCTION:
        findings.refuse("OPENAI_API_KEY", "be set in production when EMBEDDING_PROVIDER is openai")
        return requested
    findings.note(
        "OPENAI_API_KEY is not set: the local provider steps in for openai, with its own model"
        " and dimensions."
    )
    return ProviderName.LOCAL


def _timeout_ms(given: ProviderVariables, queue: QueueSettings, findings: Findings) -> int:
    lock_ms = round(queue.lock_duration.total_seconds() * 1000)
    if given.timeout_ms is None:
        return min(DEFAULT_TIMEOUT_MS, lock_ms * 2 // 5)
    if findings.sound("EMBED_JOB_LOCK_DURATION") and given.timeout_ms * 2 >= lock_ms:
        findings.refuse(
            "EMBEDDING_TIMEOUT",
            "be less than half of EMBED_JOB_LOCK_DURATION, at most"
            f" {(lock_ms - 1) // 2} milliseconds, got '{given.timeout_ms}'",
        )
    return given.timeout_ms


def _check_base_url(given: ProviderVariables, findings: Findings) -> None:
    if given.base_url is None:
        return
    if carries_credentials(given.base_url):
        findings.refuse("OPENAI_BASE_URL", "not carry credentials: the key is OPENAI_API_KEY")
        return
    endpoint = endpoint_of(given.base_url)
    if endpoint is None or endpoint.scheme not in ("http", "https") or endpoint.has_query:
        findings.refuse("OPENAI_BASE_URL", "be an https URL without query or fragment")
    elif endpoint.scheme == "http" and not endpoint.is_loopback:
        if given.allow_plaintext:
            findings.note(
                "OPENAI_ALLOW_PLAINTEXT is true: key and texts travel unencrypted to"
                " OPENAI_BASE_URL."
            )
        else:
            findings.refuse(
                "OPENAI_BASE_URL",
                "use https because its host is not loopback (OPENAI_ALLOW_PLAINTEXT=true"
                " allows http)",
            )
