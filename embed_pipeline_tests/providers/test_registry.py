from __future__ import annotations

import subprocess
import sys

import pytest

from embed_pipeline.errors import ConfigurationError
from embed_pipeline.providers import open_provider
from embed_pipeline.settings import load_settings


def test_importing_the_registry_imports_no_provider_package() -> None:
    code = (
        "import sys, embed_pipeline.providers\n"
        "heavy = {'openai', 'httpx2', 'tokenizers', 'tiktoken'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )

    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)

    assert finished.stdout.strip() == b"[]"


def test_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)

    with pytest.raises(ConfigurationError) as caught:
        open_provider(load_settings({"EMBEDDING_PROVIDER": "local"}).provider)

    assert "package tokenizers" in str(caught.value)
    assert "pip install 'tokenizers>=" in str(caught.value)


def test_a_mistake_of_our_own_is_not_blamed_on_the_installation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "embed_pipeline.providers.mock", None)

    with pytest.raises(ModuleNotFoundError):
        open_provider(load_settings({"EMBEDDING_PROVIDER": "mock"}).provider)
