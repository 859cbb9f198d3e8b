"""Who makes the vectors, with which model, and how much may be asked of it."""

from __future__ import annotations

from typing import Annotated

from embed_pipeline.domain.dimensions import NATIVE_DIMENSIONS
from embed_pipeline.settings.findings import Findings
from embed_pipeline.settings.kinds import Flag, OneOf, Whole
from embed_pipeline.settings.queue import DAY_MS, milliseconds
from embed_pipeline.settings.remote import MODEL_NAME, Remotes, working_provider
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
OPENAI_MODEL = "text-embedding-3-small"
DEFAULT_MODEL = {
    ProviderName.OPENAI: (OPENAI_MODEL, NATIVE_DIMENSIONS[OPENAI_MODEL]),
    ProviderName.AZURE: (OPENAI_MODEL, NATIVE_DIMENSIONS[OPENAI_MODEL]),
    ProviderName.LOCAL: ("l2_supercat", 256),
    ProviderName.MOCK: ("mock", 64),
}
REMOTE = frozenset({ProviderName.OPENAI, ProviderName.AZURE})
DEFAULT_REMOTE_REQUESTS = 20
DEFAULT_REMOTE_CONCURRENCY = 4
DEFAULT_TIMEOUT_MS = 60_000

_NATIVE = ", ".join(f"{model}: {dimensions}" for model, dimensions in NATIVE_DIMENSIONS.items())


class ProviderVariables(Variables):
    provider: Annotated[ProviderName | None, OneOf(ProviderName)] = setting(
        "EMBEDDING_PROVIDER",
        "Who makes the vectors. A key alone never selects openai or azure.",
        shown="local: local, test: mock, production: openai",
    )
    model: Annotated[str | None, MODEL_NAME] = setting(
        "EMBEDDING_MODEL",
        "The provider's model.",
        shown=f"openai and azure: {OPENAI_MODEL}, local: l2_supercat, mock: mock",
    )
    dimensions: Annotated[int | None, Whole("dimensions", 1, 4096)] = setting(
        "EMBEDDING_DIMENSIONS",
        "The length of a vector.",
        shown=f"{_NATIVE}, local: 256, mock: 64; must be set for other models of openai and azure",
    )
    send_dimensions: Annotated[bool | None, Flag()] = setting(
        "EMBEDDING_SEND_DIMENSIONS",
        "Whether requests to openai or azure name the dimensions. Models that shorten their"
        " vectors need it; servers of other models may refuse it.",
        shown="true for text-embedding-3-small and -large, false for other models",
    )
    max_inputs: Annotated[int | None, Whole("texts", 1, 2048)] = setting(
        "EMBEDDING_MAX_INPUTS", "How many texts one request may carry.", shown="2048"
    )
    max_request_tokens: Annotated[int | None, Whole("tokens", 16, 10_000_000)] = setting(
        "EMBEDDING_MAX_REQUEST_TOKENS",
        "How many tokens one request may carry.",
        shown="openai and azure: 300000, local and mock: without limit",
    )
    max_input_tokens: Annotated[int | None, Whole("tokens", 16, 100_000)] = setting(
        "EMBEDDING_MAX_INPUT_TOKENS",
        "How many tokens one text may have; a longer one is cut, and its vector marked as such.",
        shown="openai and azure: 8192, local and mock: without limit",
    )
    concurrency: Annotated[int | None, Whole("requests", 1, 64)] = setting(
        "EMBEDDING_CONCURRENCY",
        "How many requests one worker has under way at once.",
        shown=f"openai and azure: {DEFAULT_REMOTE_CONCURRENCY}, local and mock: 1",
    )
    timeout_ms: Annotated[int | None, Whole("milliseconds", 100, DAY_MS)] = setting(
        "EMBEDDING_TIMEOUT",
        "How long one request may take; less than half of the lock duration.",
        shown=f"{DEFAULT_TIMEOUT_MS}, or 0.4 of the lock duration where that is less",
    )
    max_requests: Annotated[int | None, Whole("requests", 1, 1_000_000)] = setting(
        "EMBEDDING_RATE_LIMIT_TOKENS",
        "How many requests all workers together may send per interval.",
        shown=f"openai and azure: {DEFAULT_REMOTE_REQUESTS}, local and mock: without limit",
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
    given: ProviderVariables,
    remotes: Remotes,
    environment: Environment,
    queue: QueueSettings,
    findings: Findings,
) -> ProviderSettings:
    requested = given.provider or DEFAULT_PROVIDER[environment]
    name = working_provider(requested, remotes, environment, findings)
    access = remotes.access(name, findings)
    if name is ProviderName.MOCK and environment is Environment.PRODUCTION:
        findings.note("EMBEDDING_PROVIDER is mock in production: its vectors mean nothing.")
    _check_limits(given, findings)
    model, dimensions = DEFAULT_MODEL[name]
    if name is requested:
        model = given.model or model
        dimensions = given.dimensions or _own_dimensions(name, model, findings)
    return ProviderSettings(
        name=name,
        requested=requested,
        model=model,
        dimensions=dimensions,
        send_dimensions=given.send_dimensions,
        api_key=access.api_key,
        base_url=access.base_url,
        deployment=access.deployment,
        api_version=access.api_version,
        timeout=milliseconds(_timeout_ms(given, queue, findings)),
        max_inputs=given.max_inputs,
        max_request_tokens=given.max_request_tokens,
        max_input_tokens=given.max_input_tokens,
        concurrency=given.concurrency or (DEFAULT_REMOTE_CONCURRENCY if name in REMOTE else 1),
        max_requests=given.max_requests or (DEFAULT_REMOTE_REQUESTS if name in REMOTE else None),
        max_tokens=given.max_tokens,
        interval=milliseconds(given.interval_ms),
    )


def _own_dimensions(name: ProviderName, model: str, findings: Findings) -> int:
    """Of a remote model never guessed: the graph would get an index that fits no answer."""
    default, dimensions = DEFAULT_MODEL[name]
    if name not in REMOTE or model == default:
        return dimensions
    if model not in NATIVE_DIMENSIONS:
        findings.refuse(
            "EMBEDDING_DIMENSIONS",
            f"be set to the length of the vectors of EMBEDDING_MODEL {model!r}, which is not known",
        )
    return NATIVE_DIMENSIONS.get(model, dimensions)


def _check_limits(given: ProviderVariables, findings: Findings) -> None:
    one, all_together = given.max_input_tokens, given.max_request_tokens
    if one is not None and all_together is not None and one > all_together:
        findings.refuse(
            "EMBEDDING_MAX_INPUT_TOKENS",
            f"be at most EMBEDDING_MAX_REQUEST_TOKENS, which is {all_together}, got '{one}'",
        )


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
