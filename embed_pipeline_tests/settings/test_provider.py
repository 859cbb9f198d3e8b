from __future__ import annotations

from datetime import timedelta

import pytest

from docs.generate.configuration import reference
from embed_pipeline.providers.azure import API_VERSION
from embed_pipeline.providers.openai.embeddings import LIMITS
from embed_pipeline.settings import ProviderName, load_settings
from embed_pipeline_tests.settings.environments import AZURE, PRODUCTION, problems

OPENAI = {"EMBED_ENV": "test", "EMBEDDING_PROVIDER": "openai", "OPENAI_API_KEY": "key-for-tests"}


def test_a_key_alone_never_selects_openai() -> None:
    settings = load_settings({"EMBED_ENV": "local", "OPENAI_API_KEY": "key-for-tests"})

    assert settings.provider.name is ProviderName.LOCAL
    assert settings.notes == ()


@pytest.mark.parametrize("key", [None, "", "  "])
def test_openai_without_a_key_falls_back_to_local_outside_production(key: str | None) -> None:
    environ = {
        "EMBED_ENV": "test",
        "EMBEDDING_PROVIDER": "openai",
        "EMBEDDING_MODEL": "text-embedding-3-large",
        "EMBEDDING_DIMENSIONS": "3072",
    }

    settings = load_settings(environ if key is None else {**environ, "OPENAI_API_KEY": key})

    provider = settings.provider
    assert provider.name is ProviderName.LOCAL
    assert (provider.model, provider.dimensions) == ("l2_supercat", 256)
    assert len(settings.notes) == 1
    assert settings.notes[0].startswith("OPENAI_API_KEY is not set: the local provider takes over")


@pytest.mark.parametrize("key", ["", " "])
def test_openai_without_a_key_stops_production(key: str) -> None:
    assert problems({**PRODUCTION, "OPENAI_API_KEY": key}) == (
        "OPENAI_API_KEY must be set in production when EMBEDDING_PROVIDER is openai.",
    )


def test_production_needs_no_key_for_another_provider() -> None:
    without_key = {**PRODUCTION, "OPENAI_API_KEY": "", "EMBEDDING_PROVIDER": "local"}

    settings = load_settings(without_key)

    assert settings.provider.name is ProviderName.LOCAL


def test_the_mock_in_production_is_noted() -> None:
    assert load_settings({**PRODUCTION, "EMBEDDING_PROVIDER": "mock"}).notes == (
        "EMBEDDING_PROVIDER is mock in production: its vectors mean nothing.",
    )


def test_a_line_end_after_the_key_is_dropped() -> None:
    key = load_settings({**OPENAI, "OPENAI_API_KEY": "key-for-tests\n"}).provider.api_key

    assert key is not None
    assert key.get_secret_value() == "key-for-tests"


def test_model_and_dimensions_can_be_set() -> None:
    provider = load_settings(
        {**OPENAI, "EMBEDDING_MODEL": "BAAI/bge-m3", "EMBEDDING_DIMENSIONS": "1024"}
    ).provider

    assert (provider.model, provider.dimensions) == ("BAAI/bge-m3", 1024)


@pytest.mark.parametrize("provider", ["openai", "azure"])
@pytest.mark.parametrize(
    ("model", "dimensions"),
    [
        ("text-embedding-3-small", 1536),
        ("text-embedding-3-large", 3072),
        ("text-embedding-ada-002", 1536),
    ],
)
def test_openais_models_have_their_own_dimensions_unless_set(
    provider: str, model: str, dimensions: int
) -> None:
    environ = {**OPENAI, **AZURE, "EMBEDDING_PROVIDER": provider, "EMBEDDING_MODEL": model}

    assert load_settings(environ).provider.dimensions == dimensions


@pytest.mark.parametrize(
    ("model", "dimensions", "changes", "must"),
    [
        ("text-embedding-3-small", "1537", {}, "be at most 1536"),
        ("text-embedding-3-small", "512", {"EMBEDDING_SEND_DIMENSIONS": "false"}, "be 1536"),
        ("text-embedding-ada-002", "256", {}, "be 1536"),
        ("text-embedding-ada-002", "256", {"EMBEDDING_SEND_DIMENSIONS": "true"}, "be 1536"),
    ],
)
def test_dimensions_that_the_model_cannot_have_are_refused(
    model: str, dimensions: str, changes: dict[str, str], must: str
) -> None:
    environ = {"EMBEDDING_MODEL": model, "EMBEDDING_DIMENSIONS": dimensions}

    assert problems({**OPENAI, **environ, **changes}) == (
        f"EMBEDDING_DIMENSIONS must {must} for EMBEDDING_MODEL {model!r}, got {dimensions!r}.",
    )


def test_a_model_that_shortens_its_vectors_can_have_fewer_dimensions() -> None:
    assert load_settings({**OPENAI, "EMBEDDING_DIMENSIONS": "64"}).provider.dimensions == 64


@pytest.mark.parametrize(
    ("provider", "model"), [("openai", "BAAI/bge-m3"), ("azure", "team-embeddings")]
)
def test_dimensions_of_another_remote_model_are_never_guessed(provider: str, model: str) -> None:
    environ = {**OPENAI, **AZURE, "EMBEDDING_PROVIDER": provider, "EMBEDDING_MODEL": model}

    assert problems(environ) == (
        "EMBEDDING_DIMENSIONS must be set to the length of the vectors of EMBEDDING_MODEL"
        f" '{model}', which is not known.",
    )
    assert load_settings({**environ, "EMBEDDING_DIMENSIONS": "1024"}).provider.dimensions == 1024


def test_another_remote_model_without_its_key_needs_no_dimensions_for_the_local_one() -> None:
    settings = load_settings({**OPENAI, "OPENAI_API_KEY": "", "EMBEDDING_MODEL": "BAAI/bge-m3"})

    assert (settings.provider.name, settings.provider.dimensions) == (ProviderName.LOCAL, 256)


def test_bad_dimensions_of_another_remote_model_are_reported_once() -> None:
    environ = {**OPENAI, "EMBEDDING_MODEL": "BAAI/bge-m3", "EMBEDDING_DIMENSIONS": "many"}

    assert problems(environ) == (
        "EMBEDDING_DIMENSIONS must be a whole number of dimensions from 1 to 4096, got 'many'.",
    )


def test_only_remote_providers_have_a_limit_by_default() -> None:
    remote, local = load_settings(OPENAI).provider, load_settings({}).provider

    assert (remote.max_requests, remote.interval) == (20, timedelta(seconds=60))
    assert (local.max_requests, local.max_tokens) == (None, None)


def test_a_limit_that_is_set_holds_for_every_provider() -> None:
    limits = {"EMBEDDING_RATE_LIMIT_TOKENS": "5", "EMBEDDING_TOKEN_BUDGET": "1000"}

    provider = load_settings(limits).provider

    assert (provider.max_requests, provider.max_tokens) == (5, 1000)


def test_limits_of_a_request_are_the_providers_own_unless_set() -> None:
    unset = load_settings(OPENAI).provider
    limits = {
        "EMBEDDING_MAX_INPUTS": "16",
        "EMBEDDING_MAX_REQUEST_TOKENS": "4000",
        "EMBEDDING_MAX_INPUT_TOKENS": "4000",
    }

    given = load_settings({**OPENAI, **limits}).provider

    assert (unset.max_inputs, unset.max_request_tokens, unset.max_input_tokens) == (None,) * 3
    assert (given.max_inputs, given.max_request_tokens, given.max_input_tokens) == (16, 4000, 4000)


def test_a_text_larger_than_a_request_is_refused() -> None:
    limits = {"EMBEDDING_MAX_REQUEST_TOKENS": "4000", "EMBEDDING_MAX_INPUT_TOKENS": "4001"}

    assert problems(limits) == (
        "EMBEDDING_MAX_INPUT_TOKENS must be at most EMBEDDING_MAX_REQUEST_TOKENS, which is 4000,"
        " got '4001'.",
    )


@pytest.mark.parametrize(
    ("provider", "concurrency"), [("openai", 4), ("azure", 4), ("local", 1), ("mock", 1)]
)
def test_remote_providers_have_several_requests_under_way(provider: str, concurrency: int) -> None:
    environ = {**OPENAI, **AZURE, "EMBEDDING_PROVIDER": provider}

    assert load_settings(environ).provider.concurrency == concurrency
    assert load_settings({**environ, "EMBEDDING_CONCURRENCY": "7"}).provider.concurrency == 7


def test_the_limits_that_the_documentation_tells_are_those_of_the_providers() -> None:
    shown = {row.variable: row.default for row in reference()}

    assert shown["EMBEDDING_MAX_INPUTS"] == f"{LIMITS.inputs}"
    assert f"openai and azure: {LIMITS.tokens}," in shown["EMBEDDING_MAX_REQUEST_TOKENS"]
    assert f"openai and azure: {LIMITS.tokens_per_input}," in shown["EMBEDDING_MAX_INPUT_TOKENS"]
    assert shown["AZURE_OPENAI_API_VERSION"] == API_VERSION


@pytest.mark.parametrize(
    ("variable", "value", "allowed"),
    [
        ("EMBEDDING_RATE_LIMIT_TOKENS", "0", "a whole number of requests from 1 to 1000000"),
        ("EMBEDDING_RATE_LIMIT_TOKENS", "-3", "a whole number of requests from 1 to 1000000"),
        (
            "EMBEDDING_RATE_LIMIT_INTERVAL",
            "0",
            "a whole number of milliseconds from 1000 to 86400000",
        ),
        (
            "EMBEDDING_RATE_LIMIT_ALLOWANCE",
            "60001",
            "a whole number of milliseconds from 0 to 60000",
        ),
        ("EMBEDDING_TOKEN_BUDGET", "0", "a whole number of tokens from 1 to 1000000000"),
        ("EMBEDDING_DIMENSIONS", "4097", "a whole number of dimensions from 1 to 4096"),
        ("EMBEDDING_MODEL", "", "a model name of up to 128 characters without spaces"),
        ("OPENAI_ALLOW_PLAINTEXT", "maybe", "true or false"),
        ("EMBEDDING_SEND_DIMENSIONS", "auto", "true or false"),
        ("EMBEDDING_MAX_INPUTS", "0", "a whole number of texts from 1 to 2048"),
        ("EMBEDDING_MAX_INPUTS", "2049", "a whole number of texts from 1 to 2048"),
        ("EMBEDDING_MAX_REQUEST_TOKENS", "15", "a whole number of tokens from 16 to 10000000"),
        ("EMBEDDING_MAX_INPUT_TOKENS", "100001", "a whole number of tokens from 16 to 100000"),
        ("EMBEDDING_CONCURRENCY", "0", "a whole number of requests from 1 to 64"),
        ("EMBEDDING_CONCURRENCY", "65", "a whole number of requests from 1 to 64"),
    ],
)
def test_bad_values_are_refused_with_what_is_allowed(
    variable: str, value: str, allowed: str
) -> None:
    assert problems({variable: value}) == (f"{variable} must be {allowed}, got {value!r}.",)


def test_a_timeout_of_half_the_lock_is_refused() -> None:
    environ = {"EMBED_JOB_LOCK_DURATION": "10000", "EMBEDDING_TIMEOUT": "5000"}

    assert problems(environ) == (
        "EMBEDDING_TIMEOUT must be less than half of EMBED_JOB_LOCK_DURATION,"
        " at most 4999 milliseconds, got '5000'.",
    )
    assert load_settings({**environ, "EMBEDDING_TIMEOUT": "4999"})


def test_a_timeout_is_not_checked_against_a_lock_that_is_bad_itself() -> None:
    reported = problems({"EMBED_JOB_LOCK_DURATION": "long", "EMBEDDING_TIMEOUT": "5000000"})

    assert [sentence.split()[0] for sentence in reported] == ["EMBED_JOB_LOCK_DURATION"]


@pytest.mark.parametrize(("lock", "timeout"), [("300000", 60_000), ("10000", 4_000), ("1000", 400)])
def test_the_default_timeout_stays_well_under_the_lock(lock: str, timeout: int) -> None:
    provider = load_settings({"EMBED_JOB_LOCK_DURATION": lock}).provider

    assert provider.timeout == timedelta(milliseconds=timeout)


@pytest.mark.parametrize(
    "url",
    [
        "https://api.example/v1",
        "http://localhost:8080/v1",
        "http://127.9.8.7/v1/",
        "http://[::1]:1/v1",
        "HTTP://LOCALHOST",
    ],
)
def test_https_and_http_to_loopback_are_taken(url: str) -> None:
    settings = load_settings({**OPENAI, "OPENAI_BASE_URL": url})

    assert settings.provider.base_url == url
    assert settings.notes == ()


@pytest.mark.parametrize(
    "url", ["http://api.example/v1", "http://10.0.0.1", "http://localhost.evil.example", "http://0"]
)
def test_http_to_another_machine_needs_a_permission_which_is_noted(url: str) -> None:
    environ = {**OPENAI, "OPENAI_BASE_URL": url}

    assert problems(environ) == (
        "OPENAI_BASE_URL must use https because its host is not loopback"
        " (OPENAI_ALLOW_PLAINTEXT=true allows plain text).",
    )
    assert load_settings({**environ, "OPENAI_ALLOW_PLAINTEXT": "true"}).notes == (
        "OPENAI_ALLOW_PLAINTEXT is true: key and texts travel unencrypted to OPENAI_BASE_URL.",
    )


@pytest.mark.parametrize(
    "url", ["ftp://api.example", "api.example/v1", "https://", "https://a:b", "https://a?key=b"]
)
def test_what_is_no_base_url_is_refused(url: str) -> None:
    assert problems({**OPENAI, "OPENAI_BASE_URL": url}) == (
        "OPENAI_BASE_URL must be an https URL without query or fragment.",
    )


def test_other_tools_openai_variables_do_not_stop_a_local_start() -> None:
    settings = load_settings({"EMBED_ENV": "local", "OPENAI_BASE_URL": "http://proxy.example"})

    assert settings.provider.name is ProviderName.LOCAL
