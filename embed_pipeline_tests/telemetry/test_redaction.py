from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embed_pipeline.telemetry.redaction import MASK, redact, register_secret


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("key sk-proj-abcDEF123456 used", f"key {MASK} used"),
        ("Incorrect API key provided: sk-ab***********wxyz. See", None),
        ("Incorrect API key provided: my-wron**-key. See", None),
        ("provided sk-...wxyz.", f"provided {MASK}."),
        ("Authorization: Bearer xyz", f"Authorization: Bearer {MASK}"),
        ("Basic dXNlcjpwYXNz==", f"Basic {MASK}"),
        ("bolt://neo4j:p@ss@host:7687/x", f"bolt://{MASK}@host:7687/x"),
        ("url?api_key=abc&x=1", f"url?api_key={MASK}&x=1"),
        ("OPENAI_API_KEY=abc", f"OPENAI_API_KEY={MASK}"),
        ("password=hunter2, next", f"password={MASK}, next"),
        ('{"password": "two words", "a": 1}', f'{{"password": {MASK}, "a": 1}}'),
        ("{'api-key': 'abc'}", f"{{'api-key': {MASK}}}"),
    ],
)
def test_what_looks_like_a_secret_is_hidden(text: str, expected: str | None) -> None:
    shown = redact(text)

    assert shown == (expected or f"Incorrect API key provided: {MASK}. See")


@pytest.mark.parametrize(
    "text",
    [
        "EMBED_QUEUE_PASSWORD must be set when the store is neo4j.",
        "bolt://host:7687 does not answer",
        "task-management and risk-averse entities",
        "1200 tokens of 300000; lease_token t-1 lost",
        "see https://example.org/a?b=c and mail@example.org",
    ],
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert redact(text) == text


def test_registered_secrets_are_hidden_in_every_spelling() -> None:
    secret = "pä\"ss'w\\ö/rd 1"
    register_secret(secret)

    shown = redact(f"{secret}|{secret!r}|p%C3%A4%22ss%27w%5C%C3%B6%2Frd%201")

    assert shown == f"{MASK}|'{MASK}'|{MASK}"


def test_a_secret_within_a_longer_secret_leaves_no_rest() -> None:
    register_secret("Zq7-inner")
    register_secret("Zq7-inner-outer")

    assert redact("a Zq7-inner-outer b") == f"a {MASK} b"


def test_short_values_are_no_secrets() -> None:
    register_secret("")
    register_secret("the")

    assert redact("the text") == "the text"


def test_threads_may_register_and_redact_at_once() -> None:
    secrets = [f"Zq7-thread-{number}-secret" for number in range(40)]
    leaks: list[str] = []

    def work(secret: str) -> None:
        register_secret(secret)
        if secret in redact(f"x {secret} y"):
            leaks.append(secret)

    threads = [threading.Thread(target=work, args=(secret,)) for secret in secrets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert leaks == []


@given(st.text() | st.text(alphabet="sk-:/@=\"' password[]redactedBearer"))
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = redact(text)

    assert redact(once) == once
