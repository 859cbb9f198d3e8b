"""Where the providers on other machines are, and the keys that open them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import SecretStr

from embed_pipeline.settings.endpoints import carries_credentials, endpoint_of
from embed_pipeline.settings.findings import Findings
from embed_pipeline.settings.kinds import Address, ApiKey, Flag, Pattern
from embed_pipeline.settings.shape import Environment, ProviderName
from embed_pipeline.settings.variables import Variables, setting

MODEL_NAME = Pattern("a model name of up to 128 characters without spaces", "[!-~]{1,128}")


class OpenAIVariables(Variables):
    api_key: Annotated[SecretStr | None, ApiKey()] = setting(
        "OPENAI_API_KEY",
        "The key for openai. Without it production refuses to start; elsewhere the local provider "
        "steps in.",
    )
    base_url: Annotated[
        str | None, Address("an https URL without credentials, query or fragment; http to loopback")
    ] = setting("OPENAI_BASE_URL", "Another server that speaks OpenAI's protocol.")
    allow_plaintext: Annotated[bool, Flag()] = setting(
        "OPENAI_ALLOW_PLAINTEXT",
        "Allow http to OPENAI_BASE_URL on another machine: key and texts travel readable.",
        default=False,
    )


class AzureVariables(Variables):
    api_key: Annotated[SecretStr | None, ApiKey()] = setting(
        "AZURE_OPENAI_API_KEY",
        "The key for azure. Without it production refuses to start; elsewhere the local provider "
        "steps in.",
    )
    endpoint: Annotated[
        str | None, Address("an https URL without credentials, query or fragment; http to loopback")
    ] = setting("AZURE_OPENAI_ENDPOINT", "The resource of azure; needed for it like the key.")
    deployment: Annotated[
        str | None,
        Pattern(
            "a name of up to 64 letters, digits, dots, dashes and underscores",
            "[A-Za-z0-9._-]{1,64}",
        ),
    ] = setting(
        "AZURE_OPENAI_DEPLOYMENT",
        "The deployment of azure. With it EMBEDDING_MODEL can name the model behind.",
        shown="the name in EMBEDDING_MODEL",
    )
    api_version: Annotated[
        str | None,
        Pattern("a version such as 2024-10-21", r"[0-9]{4}-[0-9]{2}-[0-9]{2}(-preview)?"),
    ] = setting("AZURE_OPENAI_API_VERSION", "The version of azure's protocol.", shown="2024-10-21")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionOptions:
    """How a provider is reached; nothing is set where it runs in this process."""

    api_key: SecretStr | None = None
    base_url: str | None = None
    deployment: str | None = None
    api_version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Remotes:
    openai: OpenAIVariables
    azure: AzureVariables

    def missing(self, provider: ProviderName) -> list[str]:
        """The variables without which the provider cannot work, as far as they are not set."""
        needed: dict[str, object]
        match provider:
            case ProviderName.OPENAI:
                needed = {"OPENAI_API_KEY": self.openai.api_key}
            case ProviderName.AZURE:
                needed = {
                    "AZURE_OPENAI_API_KEY": self.azure.api_key,
                    "AZURE_OPENAI_ENDPOINT": self.azure.endpoint,
                }
            case _:
                needed = {}
        return [variable for variable, value in needed.items() if value is None]

    def access(self, provider: ProviderName, findings: Findings) -> ConnectionOptions:
        """Checked for this provider alone: variables of other tools stop nobody."""
        match provider:
            case ProviderName.OPENAI:
                _check_openai(self.openai, findings)
                return ConnectionOptions(api_key=self.openai.api_key, base_url=self.openai.base_url)
            case ProviderName.AZURE:
                _check_azure(self.azure, findings)
                return ConnectionOptions(
                    api_key=self.azure.api_key,
                    base_url=self.azure.endpoint,
                    deployment=self.azure.deployment,
                    api_version=self.azure.api_version,
                )
            case _:
                return ConnectionOptions()


def working_provider(
    requested: ProviderName, remotes: Remotes, environment: Environment, findings: Findings
) -> ProviderName:
    """The one that was asked for, or the local one where its key is not there."""
    missing = remotes.missing(requested)
    if not missing:
        return requested
    if environment is Environment.PRODUCTION:
        for variable in missing:
            findings.refuse(
                variable, f"be set in production when EMBEDDING_PROVIDER is {requested}"
            )
        return requested
    findings.note(
        f"{missing[0]} is not set: the local provider steps in for {requested}, with its own model"
        " and dimensions."
    )
    return ProviderName.LOCAL


def _check_openai(given: OpenAIVariables, findings: Findings) -> None:
    if not _leaves_in_plaintext("OPENAI_BASE_URL", given.base_url, "OPENAI_API_KEY", findings):
        return
    if given.allow_plaintext:
        findings.note(
            "OPENAI_ALLOW_PLAINTEXT is true: key and texts travel unencrypted to OPENAI_BASE_URL."
        )
    else:
        findings.refuse(
            "OPENAI_BASE_URL",
            "use https because its host is not loopback (OPENAI_ALLOW_PLAINTEXT=true allows http)",
        )


def _check_azure(given: AzureVariables, findings: Findings) -> None:
    variable, key = "AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY"
    if _leaves_in_plaintext(variable, given.endpoint, key, findings):
        findings.refuse(variable, "use https because its host is not loopback")


def _leaves_in_plaintext(variable: str, url: str | None, key: str, findings: Findings) -> bool:
    """Whether texts would leave this machine readable; what is no usable URL is refused."""
    if url is None:
        return False
    if carries_credentials(url):
        findings.refuse(variable, f"not carry credentials: the key is {key}")
        return False
    endpoint = endpoint_of(url)
    if endpoint is None or endpoint.scheme not in ("http", "https") or endpoint.has_query:
        findings.refuse(variable, "be an https URL without query or fragment")
        return False
    return endpoint.scheme == "http" and not endpoint.is_loopback
