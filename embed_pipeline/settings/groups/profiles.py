"""The providers: how each is reached, and its default model. A new one is declared here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import ClassVar

from pydantic import SecretStr

from embed_pipeline.settings.parsing.addresses import carries_credentials, endpoint_of
from embed_pipeline.settings.parsing.kinds import API_KEY, FLAG, address, pattern
from embed_pipeline.settings.parsing.variables import Findings, setting, settings_of


class ProviderName(StrEnum):
    """Each is a module or package of this name in `providers/`."""

    OPENAI = "openai"
    AZURE = "azure"
    LOCAL = "local"
    MOCK = "mock"


NATIVE_DIMENSIONS: Mapping[str, int] = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
"""The vector lengths of OpenAI's models."""

FIXED_DIMENSIONS = frozenset({"text-embedding-ada-002"})
"""Models that do not shorten their vectors."""

_URL = address("an https URL without credentials, query or fragment; http to loopback")
_WITHOUT_IT = "Without it production refuses to start; elsewhere the local provider takes over."


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The variables of one remote provider; a subclass declares those that it has."""

    required: ClassVar[tuple[str, ...]] = ("api_key",)

    api_key: SecretStr | None = None
    base_url: str | None = None
    allow_plaintext: bool = False
    deployment: str | None = None
    api_version: str | None = None

    def missing(self) -> list[str]:
        """The variables without which the provider cannot work and that are not set."""
        return [self._variable(part) for part in self.required if getattr(self, part) is None]

    def check(self, findings: Findings) -> None:
        """Only for the provider in use, so that a variable of another tool stops nothing."""
        if self.base_url is None:
            return
        variable, key = self._variable("base_url"), self._variable("api_key")
        endpoint = endpoint_of(self.base_url)
        if carries_credentials(self.base_url):
            findings.refuse(variable, f"not carry credentials: the key is {key}")
        elif endpoint is None or endpoint.scheme not in ("http", "https") or endpoint.has_query:
            findings.refuse(variable, "be an https URL without query or fragment")
        elif endpoint.scheme == "http" and not endpoint.is_loopback:
            self._require_encryption(variable, findings)

    def _require_encryption(self, variable: str, findings: Findings) -> None:
        if "allow_plaintext" not in settings_of(type(self)):
            findings.refuse(variable, "use https because its host is not loopback")
            return
        findings.require_encryption(
            variable,
            "use https",
            permission=self._variable("allow_plaintext"),
            allowed=self.allow_plaintext,
            cargo="key and texts",
        )

    def _variable(self, part: str) -> str:
        return settings_of(type(self))[part].variable


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIAccess(Access):
    api_key: SecretStr | None = setting(
        "OPENAI_API_KEY", API_KEY, f"The key for openai. {_WITHOUT_IT}"
    )
    base_url: str | None = setting(
        "OPENAI_BASE_URL", _URL, "Another server that speaks OpenAI's protocol."
    )
    allow_plaintext: bool = setting(
        "OPENAI_ALLOW_PLAINTEXT",
        FLAG,
        "Allow http to OPENAI_BASE_URL on another machine: key and texts can be read on the way.",
        default="false",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AzureAccess(Access):
    required: ClassVar[tuple[str, ...]] = ("api_key", "base_url")

    api_key: SecretStr | None = setting(
        "AZURE_OPENAI_API_KEY", API_KEY, f"The key for azure. {_WITHOUT_IT}"
    )
    base_url: str | None = setting(
        "AZURE_OPENAI_ENDPOINT", _URL, "The resource of azure; required like the key."
    )
    deployment: str | None = setting(
        "AZURE_OPENAI_DEPLOYMENT",
        pattern(
            "a name of up to 64 letters, digits, dots, dashes and underscores",
            "[A-Za-z0-9._-]{1,64}",
        ),
        "The deployment of azure. With it EMBEDDING_MODEL can name the model behind it.",
        shown="the name in EMBEDDING_MODEL",
    )
    api_version: str | None = setting(
        "AZURE_OPENAI_API_VERSION",
        pattern("a version such as 2024-10-21", r"[0-9]{4}-[0-9]{2}-[0-9]{2}(-preview)?"),
        "The version of azure's protocol.",
        shown="2024-10-21",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What a provider uses where nothing else is set."""

    model: str
    dimensions: int
    access: type[Access] | None = None
    """None: it runs inside this process, costs nothing and never asks to wait."""


_OPENAI = Profile(
    model="text-embedding-3-small",
    dimensions=NATIVE_DIMENSIONS["text-embedding-3-small"],
    access=OpenAIAccess,
)
PROFILES: Mapping[ProviderName, Profile] = {
    ProviderName.OPENAI: _OPENAI,
    ProviderName.AZURE: replace(_OPENAI, access=AzureAccess),
    ProviderName.LOCAL: Profile(model="l2_supercat", dimensions=256),
    ProviderName.MOCK: Profile(model="mock", dimensions=64),
}
ACCESS = {name: profile.access for name, profile in PROFILES.items() if profile.access}
IN_PROCESS = frozenset(PROFILES.keys() - ACCESS.keys())
KNOWN_DIMENSIONS: Sequence[tuple[str, int]] = [
    *NATIVE_DIMENSIONS.items(),
    *((name, PROFILES[name].dimensions) for name in sorted(IN_PROCESS)),
]


def address_variables(provider: str) -> list[str]:
    """The variables with a remote provider's key and address."""
    return [
        settings_of(access)[part].variable
        for name, access in ACCESS.items()
        if name == provider
        for part in ("api_key", "base_url")
    ]
