"""What can go wrong between us and OpenAI, and what our errors say of it."""

from __future__ import annotations

import base64
import time
import traceback
from dataclasses import replace
from datetime import timedelta

import pytest
from pydantic import SecretStr

from embed_pipeline import errors
from embed_pipeline.ports.embedding_provider import EmbeddingProvider
from embed_pipeline.providers import open_provider
from embed_pipeline.providers.openai import OpenAIProvider
from embed_pipeline.settings import ProviderName, ProviderSettings
from embed_pipeline_tests import openai_faults as faults
from embed_pipeline_tests.openai_faults import Fault
from embed_pipeline_tests.openai_server import OpenAIServer
from embed_pipeline_tests.providers.conftest import KEY

EMPTY = {
    "x-ratelimit-limit-requests": "3000",
    "x-ratelimit-remaining-requests": "0",
    "x-ratelimit-reset-requests": "20ms",
}


@pytest.fixture
def provider(server: OpenAIServer, openai_provider: EmbeddingProvider) -> EmbeddingProvider:
    return openai_provider


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (faults.DROP, errors.ProviderUnavailable),
        (faults.CUT, errors.ProviderUnavailable),
        (faults.server_error(500), errors.ProviderUnavailable),
        (faults.server_error(503), errors.ProviderUnavailable),
        (faults.html_page(502), errors.ProviderUnavailable),
        (faults.refusal(408), errors.ProviderUnavailable),
        (faults.refusal(409), errors.ProviderUnavailable),
        (faults.refusal(405), errors.ProviderUnavailable),
        (faults.rate_limited(), errors.RateLimited),
        (faults.html_page(429), errors.RateLimited),
        (faults.request_too_large(), errors.InputTooLarge),
        (faults.quota_exhausted(), errors.QuotaExhausted),
        (
            faults.account_stopped(429, kind="billing_not_active", code="billing_not_active"),
            errors.QuotaExhausted,
        ),
        (faults.account_stopped(429, kind="billing_not_active"), errors.QuotaExhausted),
        (
            faults.account_stopped(
                400, kind="invalid_request_error", code="billing_hard_limit_reached"
            ),
            errors.QuotaExhausted,
        ),
        (faults.account_stopped(429, kind="access_terminated"), errors.CredentialsRefused),
        (
            faults.account_stopped(429, kind="requests", code="account_deactivated"),
            errors.CredentialsRefused,
        ),
        (faults.refusal(402), errors.QuotaExhausted),
        (faults.credentials_refused(), errors.CredentialsRefused),
        (faults.refusal(403), errors.CredentialsRefused),
        (faults.model_not_found(), errors.ModelNotFound),
        (faults.refusal(400), errors.InputRefused),
        (faults.refusal(422), errors.InputRefused),
        (faults.refusal(400, param="input"), errors.InputRefused),
        (faults.refusal(400, param="dimensions"), errors.SettingsRefused),
        (faults.refusal(400, param="model"), errors.SettingsRefused),
        (faults.refusal(422, param="encoding_format"), errors.SettingsRefused),
        (faults.oddly_refused(400, param=["body", "input"]), errors.InputRefused),
        (faults.oddly_refused(422, param={"in": "model"}), errors.InputRefused),
        (faults.oddly_refused(400, param=7, code=["model"], type={"a": 1}), errors.InputRefused),
        (faults.oddly_refused(429, code={"a": 1}, type=["tokens"]), errors.RateLimited),
        (faults.refusal(413), errors.InputTooLarge),
        (faults.html_page(413), errors.InputTooLarge),
        (faults.MISSING_ROW, errors.MalformedResponse),
        (faults.EXTRA_ROW, errors.MalformedResponse),
        (faults.SAME_INDEX, errors.MalformedResponse),
        (faults.NAN_ROW, errors.MalformedResponse),
        (faults.ZERO_ROW, errors.MalformedResponse),
        (faults.WRONG_DIMENSION, errors.MalformedResponse),
        (faults.html_page(200), errors.MalformedResponse),
        (faults.body_of(b""), errors.MalformedResponse),
        (faults.body_of(b"\xff\xfe\x00"), errors.MalformedResponse),
        (faults.body_of(b"[]"), errors.MalformedResponse),
        (faults.body_of(b'{"data": []}'), errors.MalformedResponse),
        (faults.body_of(b'{"data": null}'), errors.MalformedResponse),
        (faults.body_of(b'{"error": {"message": "no"}}'), errors.MalformedResponse),
        (faults.body_of(b'{"data": [{"index": 0}]}'), errors.MalformedResponse),
        (faults.body_of(b'{"data": [{"index": 0, "embedding": "!"}]}'), errors.MalformedResponse),
        (
            faults.body_of(b'{"data": [{"index": 0, "embedding": "YWE="}]}'),
            errors.MalformedResponse,
        ),
        (faults.body_of(b'{"data": [{"index": [], "embedding": [1]}]}'), errors.MalformedResponse),
        (
            faults.body_of(b'{"data": [{"index": 0, "embedding": [1e99]}]}'),
            errors.MalformedResponse,
        ),
    ],
)
def test_what_goes_wrong_has_its_own_error_and_is_not_retried(
    provider: EmbeddingProvider,
    server: OpenAIServer,
    fault: Fault,
    expected: type[errors.EmbedPipelineError],
) -> None:
    server.inject(fault)

    with pytest.raises(errors.EmbedPipelineError) as caught:
        provider.embed(["one", "two"])

    assert type(caught.value) is expected
    assert "\n" not in str(caught.value)
    assert "<html" not in str(caught.value)
    assert len(server.requests) == 1
    assert provider.embed(["one"]).vectors.shape == (1, 1536)


def test_silence_ends_at_the_timeout(config: ProviderSettings, server: OpenAIServer) -> None:
    provider = open_provider(replace(config, timeout=timedelta(seconds=0.2)))
    server.inject(faults.HANG)
    started = time.monotonic()

    with pytest.raises(errors.ProviderTimeout, match=r"within 0\.2 s"):
        provider.embed(["text"])

    provider.close()
    assert 0.2 <= time.monotonic() - started < 2
    assert len(server.requests) == 1


@pytest.mark.parametrize("name", [ProviderName.OPENAI, ProviderName.AZURE])
@pytest.mark.parametrize(
    "fault", [faults.TRICKLE, replace(faults.server_error(), trickle=True)], ids=["answer", "error"]
)
def test_server_that_sends_a_little_at_a_time_is_left_at_the_timeout(
    config: ProviderSettings, server: OpenAIServer, fault: Fault, name: ProviderName
) -> None:
    url = server.azure_endpoint if name is ProviderName.AZURE else server.base_url
    impatient = replace(config, name=name, base_url=url, timeout=timedelta(seconds=0.5))
    provider = open_provider(impatient)
    server.inject(fault)

    with pytest.raises(errors.ProviderTimeout, match=r"within 0\.5 s"):
        provider.embed(["text"])

    provider.close()


def test_a_closed_port_is_unavailable(config: ProviderSettings) -> None:
    provider = open_provider(replace(config, base_url="http://127.0.0.1:9/v1"))

    with pytest.raises(errors.ProviderUnavailable, match="cannot be reached"):
        provider.embed(["text"])

    provider.close()


def test_the_real_limits_are_refused_inputs(provider: EmbeddingProvider) -> None:
    for texts in (["word"] * 2049, [" a" * 8193], ["x" * 4 * 8000] * 40):
        with pytest.raises(errors.InputRefused, match="answered 400") as caught:
            provider.embed(texts)
        assert caught.value.category is errors.ErrorCategory.PERMANENT


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "7"}, 7),
        ({"Retry-After-Ms": "250", "Retry-After": "7"}, 0.25),
        ({"Retry-After": "999999"}, 3600),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
        ({**EMPTY, "x-ratelimit-reset-requests": "6m0s"}, 360),
        ({**EMPTY, "x-ratelimit-reset-requests": "6m0s", "Retry-After": "7"}, 7),
        ({**EMPTY, "x-ratelimit-limit-requests": "0"}, None),
    ],
)
def test_rate_limit_carries_the_wait_the_provider_asks_for(
    provider: EmbeddingProvider,
    server: OpenAIServer,
    headers: dict[str, str],
    seconds: float | None,
) -> None:
    server.inject(faults.rate_limited(headers))

    with pytest.raises(errors.RateLimited) as caught:
        provider.embed(["text"])

    expected = None if seconds is None else timedelta(seconds=seconds)
    assert caught.value.retry_after == expected


@pytest.mark.parametrize("key", [KEY, "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"])
def test_the_key_is_in_no_error_no_repr_and_no_log(
    config: ProviderSettings,
    server: OpenAIServer,
    caplog: pytest.LogCaptureFixture,
    key: str,
) -> None:
    caplog.set_level("DEBUG")
    server.api_key = key
    provider = open_provider(replace(config, api_key=SecretStr(key)))
    echo = f"{'padding ' * 23}{key} and bearer {key}"
    server.inject(
        *(faults.refusal(status, echo) for status in (400, 401, 403, 404, 413, 429, 500)),
        faults.credentials_refused(key),
        faults.body_of(echo.encode()),
        faults.DROP,
    )
    shown = [repr(provider), repr(vars(provider))]

    for _ in range(10):
        with pytest.raises(errors.EmbedPipelineError) as caught:
            provider.embed(["text"])
        shown += traceback.format_exception(caught.value)
    provider.embed(["text"])

    provider.close()
    shown.append(caplog.text)
    assert len(server.requests) == 11
    for piece in (key, key[:12], base64.b64encode(key.encode()).decode()):
        assert piece not in "".join(shown)


def test_an_error_quotes_at_most_200_characters(
    provider: EmbeddingProvider, server: OpenAIServer
) -> None:
    server.inject(faults.refusal(400, "private words " * 1000))

    with pytest.raises(errors.InputRefused) as caught:
        provider.embed(["text"])

    said = str(caught.value).removeprefix(f"{provider.model} answered 400: ")
    assert said.startswith("private words private")
    assert len(said) == 200
    assert "".join(traceback.format_exception(caught.value)).count("private") <= 2 * 15


def test_an_error_keeps_its_cause(provider: EmbeddingProvider, server: OpenAIServer) -> None:
    server.inject(faults.server_error())

    with pytest.raises(errors.ProviderUnavailable) as caught:
        provider.embed(["text"])

    assert type(caught.value.__cause__).__name__ == "InternalServerError"


def test_a_request_that_another_thread_closes_is_unavailable(config: ProviderSettings) -> None:
    provider = OpenAIProvider(config)
    provider._client().close()

    with pytest.raises(errors.ProviderUnavailable, match="closed by another thread"):
        provider.embed(["text"])


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(
    config: ProviderSettings, server: OpenAIServer, status: int
) -> None:
    provider = open_provider(config)
    with OpenAIServer(api_key=KEY) as elsewhere:
        headers = {"location": f"{elsewhere.base_url}/embeddings"}
        server.inject(Fault(reply=faults.error_reply(status, "moved", headers=headers)))

        with pytest.raises((errors.SettingsRefused, errors.ProviderUnavailable)) as caught:
            provider.embed(["a text that stays here"])

        assert not elsewhere.requests
    provider.close()
    expected = errors.SettingsRefused if status in (301, 308) else errors.ProviderUnavailable
    assert type(caught.value) is expected
    assert len(server.requests) == 1
