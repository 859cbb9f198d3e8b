"""Which provider makes the vectors, with which model, and how much may be asked of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from pydantic import SecretStr

from embed_pipeline.domain.window import ALLOWANCE
from embed_pipeline.settings.groups.general import Environment
from embed_pipeline.settings.groups.profiles import (
    ACCESS,
    FIXED_DIMENSIONS,
    IN_PROCESS,
    KNOWN_DIMENSIONS,
    NATIVE_DIMENSIONS,
    PROFILES,
    Access,
    ProviderName,
)
from embed_pipeline.settings.groups.queue import QueueSettings
from embed_pipeline.settings.parsing.kinds import DAY_MS, FLAG, duration, one_of, pattern, whole
from embed_pipeline.settings.parsing.variables import Findings, parse, setting

MILLISECOND = timedelta(milliseconds=1)

DEFAULT_PROVIDER = {
    Environment.LOCAL: ProviderName.LOCAL,
    Environment.TEST: ProviderName.MOCK,
    Environment.PRODUCTION: ProviderName.OPENAI,
}
REMOTE_REQUESTS = 20
REMOTE_CONCURRENCY = 4

_REMOTE = " and ".join(ACCESS)
_INSIDE = " and ".join(sorted(IN_PROCESS))
_NATIVE = ", ".join(f"{model}: {dimensions}" for model, dimensions in KNOWN_DIMENSIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSettings:
    """What a provider is opened with, and the limits that all its callers share."""

    name: ProviderName = setting(
        "EMBEDDING_PROVIDER",
        one_of(ProviderName),
        "Which provider makes the vectors. A key alone never selects one.",
        shown="local: local, test: mock, production: openai",
    )
    model: str = setting(
        "EMBEDDING_MODEL",
        pattern("a model name of up to 128 characters without spaces", "[!-~]{1,128}"),
        "The provider's model.",
        shown=", ".join(f"{name}: {profile.model}" for name, profile in PROFILES.items()),
    )
    dimensions: int = setting(
        "EMBEDDING_DIMENSIONS",
        whole("dimensions", 1, 4096),
        "The length of a vector.",
        shown=f"{_NATIVE}; must be set for other models of {_REMOTE}",
    )
    send_dimensions: bool | None = setting(
        "EMBEDDING_SEND_DIMENSIONS",
        FLAG,
        f"Whether requests to {_REMOTE} name the dimensions. Models that shorten their"
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
        shown=f"{_REMOTE}: 300000, {_INSIDE}: without limit",
    )
    max_input_tokens: int | None = setting(
        "EMBEDDING_MAX_INPUT_TOKENS",
        whole("tokens", 16, 100_000),
        "How many tokens one text may have; a longer one is cut, and its vector marked as such.",
        shown=f"{_REMOTE}: 8192, {_INSIDE}: without limit",
    )
    concurrency: int = setting(
        "EMBEDDING_CONCURRENCY",
        whole("requests", 1, 64),
        "How many requests one worker sends at once.",
        shown=f"{_REMOTE}: {REMOTE_CONCURRENCY}, otherwise 1",
    )
    timeout: timedelta = setting(
        "EMBEDDING_TIMEOUT",
        duration("milliseconds", 100, DAY_MS),
        "How long one request may take; less than half of the lock duration.",
        default="60000",
        shown="60000, or 0.4 of the lock duration where that is less",
    )
    max_requests: int | None = setting(
        "EMBEDDING_RATE_LIMIT_TOKENS",
        whole("requests", 1, 1_000_000),
        "How many requests all workers together may send per interval.",
        shown=f"{_REMOTE}: {REMOTE_REQUESTS}, otherwise without limit",
    )
    """This and `max_tokens`: None means without limit."""
    interval: timedelta = setting(
        "EMBEDDING_RATE_LIMIT_INTERVAL",
        duration("milliseconds", 1000, DAY_MS),
        "The interval of both limits, measured where the provider receives the requests.",
        default="60000",
    )
    allowance: timedelta = setting(
        "EMBEDDING_RATE_LIMIT_ALLOWANCE",
        duration("milliseconds", 0, 60_000),
        "How long a request may take to reach the provider, connecting included. Each request"
        " counts this much longer than the interval.",
        default=f"{ALLOWANCE // MILLISECOND}",
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

    @property
    def sends_dimensions(self) -> bool:
        """Unless set, only for models that are known to take them: other servers answer 400."""
        if self.model in FIXED_DIMENSIONS:
            return False
        if self.send_dimensions is not None:
            return self.send_dimensions
        return self.model in NATIVE_DIMENSIONS


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
    complete = replace(
        given,
        name=name,
        model=model,
        dimensions=dimensions,
        timeout=_timeout(given.timeout, environ, queue.lock_duration, findings),
        concurrency=given.concurrency or (REMOTE_CONCURRENCY if is_remote else 1),
        max_requests=given.max_requests or (REMOTE_REQUESTS if is_remote else None),
        api_key=access.api_key,
        base_url=access.base_url,
        deployment=access.deployment,
        api_version=access.api_version,
    )
    _check_dimensions(complete, findings)
    return complete


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


def _check_dimensions(complete: ProviderSettings, findings: Findings) -> None:
    native = NATIVE_DIMENSIONS.get(complete.model)
    if native is None or complete.name in IN_PROCESS or complete.dimensions == native:
        return
    if complete.dimensions > native or not complete.sends_dimensions:
        most = "at most " if complete.sends_dimensions else ""
        findings.refuse(
            "EMBEDDING_DIMENSIONS",
            f"be {most}{native} for EMBEDDING_MODEL {complete.model!r}, got"
            f" '{complete.dimensions}'",
        )


def _check_limits(given: ProviderSettings, findings: Findings) -> None:
    text, request = given.max_input_tokens, given.max_request_tokens
    if text is not None and request is not None and text > request:
        findings.refuse(
            "EMBEDDING_MAX_INPUT_TOKENS",
            f"be at most EMBEDDING_MAX_REQUEST_TOKENS, which is {request}, got '{text}'",
        )


def _timeout(
    timeout: timedelta, environ: Mapping[str, str], lock: timedelta, findings: Findings
) -> timedelta:
    if "EMBEDDING_TIMEOUT" not in environ:
        return min(timeout, lock * 2 // 5)
    if findings.accepted("EMBED_JOB_LOCK_DURATION") and timeout * 2 >= lock:
        most = (lock - MILLISECOND) // 2 // MILLISECOND
        findings.refuse(
            "EMBEDDING_TIMEOUT",
            f"be less than half of EMBED_JOB_LOCK_DURATION, at most {most} milliseconds,"
            f" got '{timeout // MILLISECOND}'",
        )
    return timeout
