"""What every embedding provider promises, whoever computes the vectors."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from embed_pipeline.errors import InputRefused
from embed_pipeline.ports.embedding_provider import EmbeddingProvider, Vectors

TEXTS = (
    "Ada Lovelace wrote the first program.",
    "Neo4j stores nodes and relationships.",
    "Die Straße nach Zürich",
    "東京は日本の首都です",
    "🙂 e\u0301 \u200b \x00 مرحبا",
    " ",
)
LONG = ("word",) * 20_000
"""Over the limit of one input of every provider that has one."""


class EmbeddingProviderContract:
    """Bind it by overriding the fixture `provider`."""

    @pytest.fixture
    def provider(self) -> Iterator[EmbeddingProvider]:
        raise NotImplementedError

    def test_each_text_gets_one_finite_float32_row(self, provider: EmbeddingProvider) -> None:
        vectors = provider.embed(TEXTS).vectors

        assert vectors.shape == (len(TEXTS), provider.dimensions)
        assert vectors.dtype == np.float32
        assert np.isfinite(vectors).all()

    def test_rows_are_unit_vectors(self, provider: EmbeddingProvider) -> None:
        vectors = provider.embed(TEXTS).vectors

        assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)

    def test_rows_keep_the_order_of_the_texts(self, provider: EmbeddingProvider) -> None:
        forwards = provider.embed(TEXTS).vectors
        backwards = provider.embed(TEXTS[::-1]).vectors

        assert close(forwards, backwards[::-1])

    def test_a_text_gets_the_same_vector_alone_as_in_company(
        self, provider: EmbeddingProvider
    ) -> None:
        together = provider.embed(TEXTS).vectors
        alone = np.vstack([provider.embed([text]).vectors for text in TEXTS])

        assert close(together, alone)

    def test_a_repeated_text_gets_the_same_vector_twice(self, provider: EmbeddingProvider) -> None:
        vectors = provider.embed(["twice", "once", "twice"]).vectors

        assert close(vectors[0], vectors[2])

    def test_different_texts_get_different_vectors(self, provider: EmbeddingProvider) -> None:
        vectors = provider.embed(TEXTS).vectors

        similarity = vectors @ vectors.T
        assert (similarity[~np.eye(len(TEXTS), dtype=bool)] < 0.999).all()

    def test_model_names_provider_and_dimensions(self, provider: EmbeddingProvider) -> None:
        assert provider.model.startswith(f"{provider.name}/")
        assert provider.model.endswith(f"@{provider.dimensions}")

    def test_no_texts_are_answered_without_work(self, provider: EmbeddingProvider) -> None:
        embedded = provider.embed([])

        assert embedded.vectors.shape == (0, provider.dimensions)
        assert embedded.vectors.dtype == np.float32
        assert embedded.tokens == 0

    def test_tokens_are_counted(self, provider: EmbeddingProvider) -> None:
        assert provider.embed(["one small text"]).tokens > 0

    def test_as_many_texts_as_allowed_fit_in_one_request(self, provider: EmbeddingProvider) -> None:
        texts = [f"text number {number}" for number in range(provider.limits.inputs)]

        vectors = provider.embed(texts).vectors

        assert len(vectors) == provider.limits.inputs
        assert close(vectors[-1:], provider.embed(texts[-1:]).vectors)

    def test_short_texts_fit_as_they_are_and_in_order(self, provider: EmbeddingProvider) -> None:
        fitted = provider.fit(TEXTS)

        assert [one.text for one in fitted] == list(TEXTS)
        assert not any(one.truncated for one in fitted)
        assert all(one.tokens > 0 for one in fitted)

    def test_no_texts_fit_as_none(self, provider: EmbeddingProvider) -> None:
        assert provider.fit([]) == []

    def test_a_longer_text_counts_more_tokens(self, provider: EmbeddingProvider) -> None:
        short, long = provider.fit(["a few words", "a few words more than there were before"])

        assert short.tokens < long.tokens

    def test_texts_over_the_limit_are_cut_to_beginnings_that_are_accepted(
        self, provider: EmbeddingProvider
    ) -> None:
        texts = [" ".join(["short", *LONG]), "short", "東京🙂" * 6_000, "x" * 70_000]

        fitted = provider.fit(texts)

        assert all(text.startswith(one.text) for text, one in zip(texts, fitted, strict=True))
        assert [one.truncated for one in fitted] == [
            len(one.text) < len(text) for text, one in zip(texts, fitted, strict=True)
        ]
        assert not fitted[1].truncated
        if provider.limits.tokens_per_input is not None:
            assert fitted[0].truncated
        vectors = provider.embed([one.text for one in fitted]).vectors
        assert vectors.shape == (4, provider.dimensions)

    def test_what_was_cut_fits_as_it_is(self, provider: EmbeddingProvider) -> None:
        (cut,) = provider.fit([" ".join(LONG)])
        (again,) = provider.fit([cut.text])

        assert (again.text, again.tokens, again.truncated) == (cut.text, cut.tokens, False)

    @pytest.mark.parametrize("text", ["", "half a pair \ud83d"], ids=["empty", "broken-unicode"])
    def test_a_text_nobody_can_embed_is_left_to_the_request(
        self, provider: EmbeddingProvider, text: str
    ) -> None:
        good, bad = provider.fit(["good", text])

        assert (good.text, bad.text, bad.truncated) == ("good", text, False)

    def test_the_callers_texts_are_left_alone(self, provider: EmbeddingProvider) -> None:
        texts = list(TEXTS)

        provider.embed(texts)

        assert tuple(texts) == TEXTS

    def test_the_vectors_belong_to_the_caller(self, provider: EmbeddingProvider) -> None:
        first = provider.embed(TEXTS).vectors
        first[:] = 0

        assert provider.embed(TEXTS).vectors.any(axis=1).all()

    def test_many_threads_get_the_vectors_of_their_own_texts(
        self, provider: EmbeddingProvider
    ) -> None:
        batches = [[f"thread {thread} text {n}" for n in range(20)] for thread in range(8)]

        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda batch: provider.embed(batch).vectors, batches))

        for batch, vectors in zip(batches, answers, strict=True):
            assert close(vectors, provider.embed(batch).vectors)

    @pytest.mark.parametrize("text", ["", "half a pair \ud83d"], ids=["empty", "broken-unicode"])
    def test_a_text_nobody_can_embed_is_refused(
        self, provider: EmbeddingProvider, text: str
    ) -> None:
        with pytest.raises(InputRefused, match="Text 1 of 3"):
            provider.embed(["good", text, "good too"])

    def test_getting_ready_twice_or_after_closing_is_safe(
        self, provider: EmbeddingProvider
    ) -> None:
        provider.get_ready()
        provider.get_ready()
        provider.close()
        provider.get_ready()

        assert len(provider.embed(["after"]).vectors) == 1

    def test_closing_twice_is_safe(self, provider: EmbeddingProvider) -> None:
        provider.embed(["before"])

        provider.close()
        provider.close()


def close(one: Vectors, other: Vectors) -> bool:
    return bool(np.allclose(one, other, atol=1e-6))
