"""The Python examples of the documentation run as they are printed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from embed_pipeline.ports.embedding_provider import EmbeddingProvider
from embed_pipeline_tests.contracts.embedding_provider import EmbeddingProviderContract
from embed_pipeline_tests.docs.pages import PAGES, ROOT, examples, run_examples

NEEDS_A_SERVER = {"reaper.md"}  # which has one in the tests of the reaper
WITH_PYTHON = [
    page for page in PAGES if examples(page, "python") and page.name not in NEEDS_A_SERVER
]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Examples write into the current directory."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: page.name)
def test_python_examples_of_a_page_run_from_top_to_bottom(page: Path) -> None:
    run_examples(page)


def test_concepts_and_adding_have_examples() -> None:
    assert {"concepts.md", "adding.md"} <= {page.name for page in WITH_PYTHON}


class TestProviderOfTheExample(EmbeddingProviderContract):
    """A reader who copies it has a provider that keeps every promise."""

    @pytest.fixture
    def provider(self) -> Iterator[EmbeddingProvider]:
        names: dict[str, Any] = run_examples(ROOT / "docs" / "adding.md")
        provider = names["open_provider"](
            names["ProviderSettings"](model="letters", dimensions=512)
        )
        yield provider
        provider.close()
