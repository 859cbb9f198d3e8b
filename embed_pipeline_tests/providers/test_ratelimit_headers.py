from __future__ import annotations

from datetime import timedelta

import pytest

from embed_pipeline.domain.window import RemainingQuota
from embed_pipeline.ports.embedding_provider import EmbeddingProvider
from embed_pipeline.providers.openai.headers import LONGEST, remaining, reset_after
from embed_pipeline_tests.openai_budget import Budget
from embed_pipeline_tests.openai_server import OpenAIServer


def said(kind: str, limit: object, remaining: object, reset: str | None = None) -> dict[str, str]:
    headers = {
        f"x-ratelimit-limit-{kind}": str(limit),
        f"x-ratelimit-remaining-{kind}": str(remaining),
    }
    return headers if reset is None else {**headers, f"x-ratelimit-reset-{kind}": reset}


@pytest.mark.parametrize(
    ("reset", "expected"),
    [
        ("1s", timedelta(seconds=1)),
        ("6m0s", timedelta(minutes=6)),
        ("20ms", timedelta(milliseconds=20)),
        ("1m20ms", timedelta(minutes=1, milliseconds=20)),
        ("0.5s", timedelta(milliseconds=500)),
        ("17m3.52s", timedelta(minutes=17, seconds=3.52)),
        ("7", timedelta(seconds=7)),
        ("0s", timedelta()),
        ("1h2m3.5s", LONGEST),
        ("3d", LONGEST),
        ("999999999999d", LONGEST),
        ("1793000000", None),
        ("soon", None),
        ("-1s", None),
        ("1s1m", None),
        ("1.2.3s", None),
        ("", None),
    ],
)
def test_resets_are_read_in_all_their_spellings(reset: str, expected: timedelta | None) -> None:
    found = remaining(said("requests", 3000, 5, reset))

    assert found == RemainingQuota(requests=5, back_in=expected)


def test_requests_and_tokens_are_both_read() -> None:
    headers = said("requests", 3000, 2999, "20ms") | said("tokens", 1_000_000, 400_000, "36s")

    assert remaining(headers) == RemainingQuota(
        requests=2999, tokens=400_000, back_in=timedelta(seconds=36)
    )


def test_the_wait_is_for_what_is_used_up() -> None:
    headers = said("requests", 3000, 0, "2s") | said("tokens", 1_000_000, 400_000, "36s")

    assert remaining(headers) == RemainingQuota(
        requests=0, tokens=400_000, back_in=timedelta(seconds=2)
    )
    assert reset_after(headers) == timedelta(seconds=2)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        said("requests", 0, 0, "1s") | said("tokens", 0, 0),
        {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1s"},
        {"x-ratelimit-limit-requests": "10"},
        said("requests", "many", "some"),
        said("requests", 10, -1),
        said("tokens", "1e9", "1e9"),
    ],
    ids=["none", "azure-zeros", "no-limit", "no-remaining", "words", "negative", "exponent"],
)
def test_what_cannot_be_relied_on_says_nothing(headers: dict[str, str]) -> None:
    assert remaining(headers) is None
    assert reset_after(headers) is None


def test_an_answer_tells_what_is_left(
    openai_provider: EmbeddingProvider, server: OpenAIServer
) -> None:
    server.budget = Budget(requests=3, tokens=100, per=timedelta(seconds=30))

    found = openai_provider.embed(["four bytes x 5 = 20 b"]).remaining

    assert found is not None
    assert (found.requests, found.tokens) == (2, 94)
    assert found.back_in is not None
    assert timedelta(seconds=25) < found.back_in <= timedelta(seconds=30)


def test_an_answer_without_headers_tells_nothing(
    openai_provider: EmbeddingProvider, server: OpenAIServer
) -> None:
    assert openai_provider.embed(["text"]).remaining is None
