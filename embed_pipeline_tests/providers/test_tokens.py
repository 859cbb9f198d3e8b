"""What a text counts, and where it is cut: by OpenAI's own tokenizer, offline."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from embed_pipeline.ports.embedding_provider import Input, Limits
from embed_pipeline.providers.data import CL100K_BASE, VOCABULARY, WEIGHTS
from embed_pipeline.providers.tokens import estimated, fitted, tokenizer

LIMIT = 8192

PAGE = CL100K_BASE.with_name("README.md").read_text()


def fit(text: str, limit: int = LIMIT) -> Input:
    (one,) = fitted([text], Limits(tokens_per_input=limit))
    return one


def tokens(text: str) -> int:
    return len(tokenizer().encode_ordinary(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hello world", [15339, 1917]),
        ("don't\r\n \t12345", [15357, 956, 319, 220, 197, 4513, 1774]),
        (
            "東京は日本の首都です 🙂",
            [14276, 109, 47653, 15682, 9080, 22656, 16144, 61075, 72368, 38641, 28584],
        ),
        ("раббб é é", [11001, 109, 10124, 10124, 4046, 384, 54939]),
        ("<|endoftext|>", [27, 91, 8862, 728, 428, 91, 29]),
    ],
)
def test_the_tokenizer_is_that_of_openais_embedding_models(text: str, expected: list[int]) -> None:
    ids = tokenizer().encode_ordinary(text)

    assert ids == expected
    assert tokenizer().decode(ids) == text


@pytest.mark.parametrize("file", [CL100K_BASE, WEIGHTS, VOCABULARY])
def test_data_files_are_those_that_their_page_names(file: Path) -> None:
    digest = hashlib.sha256(file.read_bytes()).hexdigest()

    assert f"| `{file.name}` |" in PAGE
    assert f"| `{digest}` |" in PAGE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hello world", 3),  # two tokens, but eleven bytes
        ("a b c d e f", 6),  # six tokens in eleven bytes
        ("🙂🙂", 4),  # two of each
        ("", 0),
    ],
)
def test_the_larger_of_tokens_and_a_quarter_of_the_bytes_counts(text: str, expected: int) -> None:
    assert fit(text) == Input(text=text, tokens=expected)


def test_without_a_limit_of_one_input_the_bytes_are_enough() -> None:
    (one,) = fitted(["a b c d e f"], Limits(tokens=300_000))

    assert one == Input(text="a b c d e f", tokens=3)


@pytest.mark.parametrize(
    "piece",
    [
        "a ",
        "word ",
        "x",
        "🙂",
        "👩‍👩‍👧‍👦",
        "東",
        "é",
        "e\u0301",
        "\n",
        " ",
        "1",
        "\0",
        "\U000e0001",
        "don't ",
        "\r\n \t",
    ],
)
def test_a_long_run_is_cut_at_the_limit_and_not_long_before(piece: str) -> None:
    text = piece * (130 * LIMIT // len(piece))

    cut = fit(text)

    assert cut.truncated
    assert text.startswith(cut.text)
    assert LIMIT - 4 <= tokens(cut.text) <= LIMIT
    assert cut.tokens == max(tokens(cut.text), estimated(cut.text))


@pytest.mark.parametrize("piece", [" a", " word", "\n\n.", "x y", "東"])
def test_exactly_the_limit_is_whole_and_one_more_is_cut(piece: str) -> None:
    count = 1
    while tokens(piece * (count + 1)) <= LIMIT:
        count += max(1, (LIMIT - tokens(piece * count)) // 8)

    assert not fit(piece * count).truncated
    assert fit(piece * (count + 1)).truncated


def test_a_text_of_many_characters_and_few_tokens_is_whole() -> None:
    text = ("deep" + " " * 120 + "\n") * 2_000

    assert len(text) > 200_000
    assert fit(text).text == text


# Whole characters of every width, and what the tokenizer treats in its own way.
characters = st.one_of(
    st.characters(exclude_categories=["Cs"]),
    st.sampled_from("🙂👩\u200d\u0301 \n\r\t'東京ßé!?1aA\0"),
)


@settings(max_examples=300)
@example(text="🙂" * 40, limit=4)
@example(text=" \n" * 40, limit=5)
@example(text="x y z раббб", limit=4)  # the fourth token ends inside the third letter
@given(text=st.text(characters, max_size=200), limit=st.integers(4, 60))
def test_a_cut_text_is_a_valid_beginning_within_the_limit(text: str, limit: int) -> None:
    one = fit(text, limit)

    assert text.startswith(one.text)
    assert tokens(one.text) <= limit
    assert one.truncated == (tokens(text) > limit) == (one.text != text)
    assert one.text or not text
    # At most the tokens of one broken character are lost.
    assert not one.truncated or tokens(one.text) >= limit - 4


def test_two_thousand_short_texts_and_a_long_one_take_no_time() -> None:
    texts = [f"entity {number}: a person who wrote about graphs" for number in range(2_000)]
    texts.append("The quick brown fox jumps over the lazy dog. " * 222_222)
    tokenizer()
    started = time.process_time()

    inputs = fitted(texts, Limits(tokens_per_input=LIMIT))

    assert time.process_time() - started < 1
    assert [one.truncated for one in inputs] == [*[False] * 2_000, True]


ONCE = """
import sys, threading
from embed_pipeline.ports.embedding_provider import Limits
from embed_pipeline.providers import tokens

tokens.fitted(["text"], Limits())
assert not tokens._load.cache_info().currsize, "loaded before it was needed"

loaded = []
load = tokens._load.__wrapped__
tokens._load = __import__("functools").cache(lambda: loaded.append(1) or load())
threads = [
    threading.Thread(target=tokens.fitted, args=(["text"], Limits(tokens_per_input=8)))
    for _ in range(8)
]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert loaded == [1], loaded
"""


def test_the_tokenizer_is_loaded_once_and_only_when_it_counts() -> None:
    finished = subprocess.run(
        [sys.executable, "-W", "error", "-c", ONCE], capture_output=True, text=True, check=False
    )

    assert (finished.returncode, finished.stderr) == (0, "")


def test_threads_count_side_by_side() -> None:
    texts = [f"text {number} " * 50 for number in range(200)]
    alone = fitted(texts, Limits(tokens_per_input=40))
    answers: list[list[Input]] = []

    def count() -> None:
        answers.append(fitted(texts, Limits(tokens_per_input=40)))

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert answers == [alone] * 4
