from __future__ import annotations

import pytest

from embed_pipeline.settings import ProviderName, load_settings
from embed_pipeline_tests.settings.environments import AZURE, PRODUCTION, problems

KEY = AZURE["AZURE_OPENAI_API_KEY"]


def test_azure_has_its_own_key_endpoint_deployment_and_version() -> None:
    provider = load_settings(
        {
            **AZURE,
            "OPENAI_API_KEY": "key-of-openai",
            "OPENAI_BASE_URL": "https://openai.example/v1",
            "AZURE_OPENAI_DEPLOYMENT": "team-embeddings",
            "AZURE_OPENAI_API_VERSION": "2025-01-01-preview",
            "EMBEDDING_MODEL": "text-embedding-3-large",
            "EMBEDDING_DIMENSIONS": "3072",
        }
    ).provider

    assert provider.name is ProviderName.AZURE
    assert provider.api_key is not None
    assert provider.api_key.get_secret_value() == KEY
    assert provider.base_url == "https://team.openai.azure.example"
    assert (provider.deployment, provider.api_version) == ("team-embeddings", "2025-01-01-preview")
    assert (provider.model, provider.dimensions) == ("text-embedding-3-large", 3072)


def test_azure_has_openais_model_and_budget_by_default() -> None:
    provider = load_settings(AZURE).provider

    assert (provider.model, provider.dimensions) == ("text-embedding-3-small", 1536)
    assert (provider.deployment, provider.api_version) == (None, None)
    assert provider.max_requests == 20


@pytest.mark.parametrize("variable", ["AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT"])
def test_azure_without_key_or_endpoint_falls_back_to_local_outside_production(
    variable: str,
) -> None:
    settings = load_settings({**AZURE, variable: ""})

    assert (settings.provider.name, settings.provider.model) == (ProviderName.LOCAL, "l2_supercat")
    assert settings.provider.api_key is None
    assert settings.notes == (
        f"{variable} is not set: the local provider takes over for azure, with its own model and"
        " dimensions.",
    )


def test_azure_without_key_and_endpoint_stops_production() -> None:
    assert problems({**PRODUCTION, "EMBEDDING_PROVIDER": "azure"}) == (
        "AZURE_OPENAI_API_KEY must be set in production when EMBEDDING_PROVIDER is azure.",
        "AZURE_OPENAI_ENDPOINT must be set in production when EMBEDDING_PROVIDER is azure.",
    )


def test_an_azure_key_alone_never_selects_azure() -> None:
    settings = load_settings({"EMBED_ENV": "local", "AZURE_OPENAI_API_KEY": KEY})

    assert settings.provider.name is ProviderName.LOCAL
    assert settings.notes == ()


@pytest.mark.parametrize(
    ("endpoint", "must"),
    [
        ("http://team.openai.azure.example", "use https because its host is not loopback"),
        ("team.openai.azure.example", "be an https URL without query or fragment"),
        ("https://team.example?api-version=1", "be an https URL without query or fragment"),
        (
            f"https://user:{KEY}@team.example",
            "not carry credentials: the key is AZURE_OPENAI_API_KEY",
        ),
    ],
)
def test_an_endpoint_that_is_none_or_shows_texts_is_refused(endpoint: str, must: str) -> None:
    assert problems({**AZURE, "AZURE_OPENAI_ENDPOINT": endpoint}) == (
        f"AZURE_OPENAI_ENDPOINT must {must}.",
    )


def test_other_tools_azure_variables_do_not_stop_another_provider() -> None:
    settings = load_settings({"EMBED_ENV": "local", "AZURE_OPENAI_ENDPOINT": "http://any.example"})

    assert settings.provider.base_url is None


@pytest.mark.parametrize(
    ("variable", "value", "allowed"),
    [
        (
            "AZURE_OPENAI_DEPLOYMENT",
            "two words",
            "a name of up to 64 letters, digits, dots, dashes and underscores",
        ),
        ("AZURE_OPENAI_API_VERSION", "latest", "a version such as 2024-10-21"),
    ],
)
def test_bad_values_are_refused_with_what_is_allowed(
    variable: str, value: str, allowed: str
) -> None:
    assert problems({variable: value}) == (f"{variable} must be {allowed}, got {value!r}.",)


def test_the_key_is_never_shown() -> None:
    settings = load_settings(AZURE)

    assert KEY not in repr(settings)
    assert problems({**AZURE, "AZURE_OPENAI_API_KEY": f"{KEY} with spaces"}) == (
        "AZURE_OPENAI_API_KEY must be printable ASCII without spaces.",
    )
