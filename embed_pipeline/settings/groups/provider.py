"""Which provider makes the vectors, with which model, and how much may be asked of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum

from pydantic import SecretStr

from embed_pipeline.settings.groups.access import Access, AzureAccess, OpenAIAccess
from embed_pipeline.settings.groups.general import Environment
from embed_pipeline.settings.groups.queue import QueueSettings
from embed_pipeline.settings.parsing.kinds import DAY_MS, FLAG, duration, one_of, pattern, whole
from embed_pipeline.settings.parsing.variables import Findings, parse, setting

MILLISECOND = timedelta(milliseconds=1)


class ProviderName(StrEnum):
    """Each is a module or package of this name in `providers/`."""

    OPENAI = "openai"
    AZURE = "azure"
    LOCAL = "local"
    MOCK = "mock"


NATIVE_DIMENSIONS: Mapping[str, int] = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
"""The vector lengths of OpenAI's models."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What a provider uses where nothing else is set."""

    model: str
    dimensions: int
    access: type[Access] | None = None
    """None: it runs inside this process, costs nothing and never asks to wait."""


_OPENAI = Profile(
    model="text-embedding-3-small",
    dimensions=NATIVE_DIMENSIONS["text-embedding-3-small"],
    access=OpenAIAccess,
)
PROFILES: Mapping[ProviderName, Profile] = {
    ProviderName.OPENAI: _OPENAI,
    ProviderName.AZURE: replace(_OPENAI, access=AzureAccess),
    ProviderName.LOCAL: Profile(model="l2_supercat", dimensions=256),
    ProviderName.MOCK: Profile(model="mock", dimensions=64),
}
ACCESS = {name: profile.access for name, profile in PROFILES.items() if profile.access}
IN_PROCESS = frozenset(PROFILES.keys() - ACCESS.keys())

DEFAULT_PROVIDER = {
    Environment.LOCAL: ProviderName.LOCAL,
    Environment.TEST: ProviderName.MOCK,
    Environment.PRODUCTION: ProviderName.OPENAI,
}
REMOTE_REQUESTS = 20
REMOTE_CONCURRENCY = 4
DEFAULT_TIMEOUT = timedelta(seconds=60)

_NATIVE = ", ".join(f"{model}: {dimensions}" for model, dimensions in NATIVE_DIMENSIONS.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSettings:
    """What a provider is opened with, and the limits that all its callers share."""

    name: ProviderName = setting(
        "EMBEDDING_PROVIDER",
        one_of(ProviderName),
        "Which provider makes the vectors. A key alone never selects openai or azure.",
        shown="local: local, test: mock, production: openai",
    )
    model: str = setting(
        "EMBEDDING_MODEL",
        pattern("a model name of up to 128 characters without spaces", "[!-~]{1,128}"),
        "The provider's model.",
        shown=f"openai and azure: {_OPENAI.model}, local: l2_supercat, mock: mock",
    )
    dimensions: int = setting(
        "EMBEDDING_DIMENSIONS",
        whole("dimensions", 1, 4096),
        "The length of a vector.",
        shown=f"{_NATIVE}, local: 256, mock: 64; must be set for other models of openai and azure",
    )
    send_dimensions: bool | None = setting(
        "EMBEDDING_SEND_DIMENSIONS",
        FLAG,
        "Whether requests to openai or azure name the dimensions. Models that shorten their"
        " vectors need it; servers of other models may refuse it.",
        shown="true for text-embedding-3-small and -large, false for other models",
    )
    """None: as the model is known to need it."""
    max_inputs: int | None = setting(
        "EMBEDDING_MAX_INPUTS",
        whole("texts", 1, 2048),
        "How many texts one request may carry.",
        shown="2048",
    )
    """This and the next two: None means the provider's own limit."""
    max_request_tokens: int | None = setting(
        "EMBEDDING_MAX_REQUEST_TOKENS",
        whole("tokens", 16, 10_000_000),
        "How many tokens one request may carry.",
        shown="openai and azure: 300000, local and mock: without limit",
    )
    max_input_tokens: int | None = setting(
        "EMBEDDING_MAX_INPUT_TOKENS",
        whole("tokens", 16, 100_000),
        "How many tokens one text may have; a longer one is cut, and its vector marked as such.",
        shown="openai and azure: 8192, local and mock: without limit",
    )
    concurrency: int = setting(
        "EMBEDDING_CONCURRENCY",
        whole("requests", 1, 64),
        "How many requests one worker sends at once.",
        shown=f"openai and azure: {REMOTE_CONCURRENCY}, local and mock: 1",
    )
    timeout: timedelta = setting(
        "EMBEDDING_TIMEOUT",
        duration("milliseconds", 100, DAY_MS),
        "How long one request may take; less than half of the lock duration.",
        shown=f"{DEFAULT_TIMEOUT // MILLISECOND}, or 0.4 of the lock duration where that is less",
    )
    max_requests: int | None = setting(
        "EMBEDDING_RATE_LIMIT_TOKENS",
        whole("requests", 1, 1_000_000),
        "How many requests all workers together may send per interval.",
        shown=f"openai and azure: {REMOTE_REQUESTS}, local and mock: without limit",
    )
    """This and `max_tokens`: None means without limit."""
    interval: timedelta = setting(
        "EMBEDDING_RATE_LIMIT_INTERVAL",
        duration("milliseconds", 1000, DAY_MS),
        "The interval of both limits.",
        default="60000",
    )
    max_tokens: int | None = setting(
        "EMBEDDING_TOKEN_BUDGET",
        whole("tokens", 1, 1_000_000_000),
        "How many API tokens all workers together may spend per interval.",
        shown="without limit",
    )
    api_key: SecretStr | None = None
    """This and the rest come from the variables of the provider in use."""
    base_url: str | None = None
    deployment: str | None = None
    api_version: str | None = None


def provider_settings(
    environ: Mapping[str, str], environment: Environment, queue: QueueSettings, findings: Findings
) -> ProviderSettings:
    given = parse(ProviderSettings, environ, findings)
    accesses = {name: parse(access, environ, findings) for name, access in ACCESS.items()}
    requested = given.name or DEFAULT_PROVIDER[environment]
    name = _working_provider(requested, accesses, environment, findings)
    access = accesses.get(name, Access())
    access.check(findings)
    if name is ProviderName.MOCK and environment is Environment.PRODUCTION:
        findings.note("EMBEDDING_PROVIDER is mock in production: its vectors mean nothing.")
    _check_limits(given, findings)
    is_remote = name not in IN_PROCESS
    model, dimensions = PROFILES[name].model, PROFILES[name].dimensions
    if name is requested:
        model = given.model or model
        dimensions = given.dimensions or _own_dimensions(name, model, findings)
    return replace(
        given,
        name=name,
        model=model,
        dimensions=dimensions,
        timeout=_timeout(given, queue, findings),
        concurrency=given.concurrency or (REMOTE_CONCURRENCY if is_remote else 1),
        max_requests=given.max_requests or (REMOTE_REQUESTS if is_remote else None),
        api_key=access.api_key,
        base_url=access.base_url,
        deployment=access.deployment,
        api_version=access.api_version,
    )


def _working_provider(
    requested: ProviderName,
    accesses: Mapping[ProviderName, Access],
    environment: Environment,
    findings: Findings,
) -> ProviderName:
    """The requested one, or the local one where its key is missing outside of production."""
    missing = accesses[requested].missing() if requested in accesses else []
    if not missing:
        return requested
    if environment is Environment.PRODUCTION:
        for variable in missing:
            findings.refuse(
                variable, f"be set in production when EMBEDDING_PROVIDER is {requested}"
            )
        return requested
    findings.note(
        f"{missing[0]} is not set: the local provider takes over for {requested}, with its own"
        " model and dimensions."
    )
    return ProviderName.LOCAL


def _own_dimensions(name: ProviderName, model: str, findings: Findings) -> int:
    """Never guessed for a remote model: the graph would get an index that fits no answer."""
    profile = PROFILES[name]
    if name in IN_PROCESS or model == profile.model:
        return profile.dimensions
    if model not in NATIVE_DIMENSIONS:
        findings.refuse(
            "EMBEDDING_DIMENSIONS",
            f"be set to the length of the vectors of EMBEDDING_MODEL {model!r}, which is not known",
        )
    return NATIVE_DIMENSIONS.get(model, profile.dimensions)


def _check_limits(given: ProviderSettings, findings: Findings) -> None:
    text, request = given.max_input_tokens, given.max_request_tokens
    if text is not None and request is not None and text > request:
        findings.refuse(
            "EMBEDDING_MAX_INPUT_TOKENS",
            f"be at most EMBEDDING_MAX_REQUEST_TOKENS, which is {request}, got '{text}'",
        )


def _timeout(given: ProviderSettings, queue: QueueSettings, findings: Findings) -> timedelta:
    timeout: timedelta | None = given.timeout
    if timeout is None:
        return min(DEFAULT_TIMEOUT, queue.lock_duration * 2 // 5)
    if findings.accepted("EMBED_JOB_LOCK_DURATION") and timeout * 2 >= queue.lock_duration:
        findings.refuse(
            "EMBEDDING_TIMEOUT",
            "be less than half of EMBED_JOB_LOCK_DURATION, at most"
            f" {(queue.lock_duration - MILLISECOND) // 2 // MILLISECOND} milliseconds,"
            f" got '{timeout // MILLISECOND}'",
        )
    return timeout
