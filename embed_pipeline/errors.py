"""Every error that this package raises. The base class is the category, the class what happened.

    EmbedPipelineError
    ├── ConfigurationError          unusable settings; nothing was started
    ├── RequestError                an unusable argument of a caller; nothing was changed
    │   └── EntityNotFound          no valid entity has that name or key
    ├── TransientError              temporary: trying again may succeed
    │   ├── StoreBusy               the database was locked for too long
    │   │   └── StoreOverloaded     it has not enough memory for everything asked at once
    │   │       └── PageTooLarge    … for this request, though it accepts other writes
    │   ├── StoreUnavailable        the database cannot be reached or opened
    │   │   └── StoreFaltered       it failed while answering; the next answer may succeed
    │   ├── ProviderUnavailable     connection refused or dropped, 5xx
    │   ├── ProviderTimeout         no answer in time
    │   ├── RateLimited             429: wait, then try again
    │   └── MalformedResponse       an answer with wrong counts, dimensions or numbers
    ├── PermanentError              this job would fail again
    │   ├── EntityGone              deleted, or no longer valid
    │   ├── InputRefused            400, 413, 422
    │   └── InputTooLarge           one input over the provider's limit
    └── CriticalError               a person has to act
        ├── StoreFull
        ├── StoreReadOnly
        ├── StoreCorrupted
        ├── StoreBroken             it has failed every request for too long
        ├── StoreAccessDenied
        ├── SchemaMissing           tables, constraints or indexes are missing
        ├── CredentialsRefused      401, 403, revoked key, closed account
        ├── ModelNotFound           404
        ├── SettingsRefused         400 for the settings, whatever the texts
        ├── ModelNotActive          the configured model was never started for this graph
        ├── CollectionMismatch      the settings describe other collections than the graph has
        └── QuotaExhausted          `insufficient_quota`: the account has no credit

Losing a lease is not an error: the stores report the lost jobs in `LeaseResult.lost`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from importlib import metadata
from typing import ClassVar


class ErrorCategory(StrEnum):
    """What kind of error it is. What happens to the job is decided in `domain.transition`."""

    TRANSIENT = "TRANSIENT"
    PERMANENT = "PERMANENT"
    CRITICAL = "CRITICAL"


class EmbedPipelineError(Exception):
    """Base of all errors. An unclassified error counts as TRANSIENT."""

    category: ClassVar[ErrorCategory] = ErrorCategory.TRANSIENT


class ConfigurationError(EmbedPipelineError):
    """All unusable settings at once, one sentence each."""

    category = ErrorCategory.CRITICAL

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


EXTRAS: Mapping[str, str] = {
    "local": "tokenizers",
    "postgres": "psycopg",
    "reaper": "psycopg",
    "mcp": "mcp",
    "parquet": "pyarrow",
    "excel": "openpyxl",
}
"""The extras of this distribution, and the package that each brings."""


def package_missing(what: str, package: str | None, *, extra: str) -> ConfigurationError:
    """Where there is no such extra, the package comes with the distribution itself."""
    command = install_command(extra) if extra in EXTRAS else f"pip install {package}"
    return ConfigurationError([f"{what} needs the package {package}: {command}."])


def install_command(*extras: str) -> str:
    """Names the packages of the extras: this distribution itself is on no package index.

    An installation that is older than one of the extras knows no version of its package.
    """
    lines = [line.partition(";") for line in metadata.requires("embed-pipeline") or ()]
    markers = {f"extra == '{extra}'" for extra in extras}
    packages = {package.strip() for package, _, marker in lines if marker.strip() in markers}
    packages = packages or {EXTRAS[extra] for extra in extras}
    return "pip install " + " ".join(f"'{package}'" for package in sorted(packages))


class RequestError(EmbedPipelineError):
    """The caller's arguments cannot be used."""

    category = ErrorCategory.PERMANENT


class EntityNotFound(RequestError):
    """No valid entity has that name or key."""


class TransientError(EmbedPipelineError):
    """Temporary: trying again may succeed."""

    category = ErrorCategory.TRANSIENT


class StoreBusy(TransientError):
    """The database was locked for longer than the timeout."""


class StoreOverloaded(StoreBusy):
    """The database has not enough memory for everything asked at once; a smaller request may do."""


class PageTooLarge(StoreOverloaded):
    """The database has not enough memory for this request, though it accepts other writes."""


class StoreUnavailable(TransientError):
    """The database cannot be reached or opened."""


class StoreFaltered(StoreUnavailable):
    """The database failed while answering, for example because it was being stopped."""


class ProviderUnavailable(TransientError):
    """The provider could not be reached, or failed while answering."""


class ProviderTimeout(ProviderUnavailable):
    """The provider did not answer in time."""


class RateLimited(TransientError):
    """The provider asks all clients of the key to wait."""

    def __init__(self, message: str, *, retry_after: timedelta | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class MalformedResponse(TransientError):
    """The provider answered with wrong counts, dimensions or numbers."""


class PermanentError(EmbedPipelineError):
    """This job would fail again."""

    category = ErrorCategory.PERMANENT


class EntityGone(PermanentError):
    """The entity was deleted or is no longer valid."""


class InputRefused(PermanentError):
    """The provider refuses this request, or one input of a batch."""


class InputTooLarge(PermanentError):
    """The request is larger than the provider accepts."""


class CriticalError(EmbedPipelineError):
    """A person has to act before work can continue."""

    category = ErrorCategory.CRITICAL


class StoreFull(CriticalError):
    """The database's disk is full."""


class StoreReadOnly(CriticalError):
    """The database cannot be written."""


class StoreCorrupted(CriticalError):
    """The file is damaged, or is not a database."""


class StoreBroken(CriticalError):
    """The database has failed every request for longer than a restart takes."""


class StoreAccessDenied(CriticalError):
    """The database refuses our credentials."""


class SchemaMissing(CriticalError):
    """Tables, constraints or indexes are missing, or of another version."""


class CredentialsRefused(CriticalError):
    """The provider refuses our key."""


class ModelNotFound(CriticalError):
    """The provider does not know the model."""


class SettingsRefused(CriticalError):
    """The provider refuses the settings, whatever the texts."""


class ModelNotActive(CriticalError):
    """The graph does not use the configured model; a run never starts one."""


class CollectionMismatch(CriticalError):
    """The settings describe other collections than the graph has registered."""


class QuotaExhausted(CriticalError):
    """The provider's quota is used up; waiting does not help."""
