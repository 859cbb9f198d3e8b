"""Every error this package raises; the base class is the category, the class is what happened.

    EmbedPipelineError
    ├── ConfigurationError          settings that cannot be used; nothing was started
    ├── RequestError                a caller's argument that cannot be used; nothing was changed
    │   └── EntityNotFound          no valid entity has that name or key
    ├── TransientError              may pass by itself
    │   ├── StoreBusy               the database is locked by somebody else for too long
    │   │   └── StoreOverloaded     it has no memory left for what was asked of it at once
    │   │       └── PageTooLarge    … though it takes other writes: it is what was asked
    │   ├── StoreUnavailable        the database cannot be reached or opened
    │   │   └── StoreFaltered       it broke while answering; the next answer may be good
    │   ├── ProviderUnavailable     connection refused or dropped, 5xx
    │   ├── ProviderTimeout         no answer in time
    │   ├── RateLimited             429 with room to come back
    │   └── MalformedResponse       an answer with wrong counts, dimensions or numbers
    ├── PermanentError              will fail again for this job
    │   ├── EntityGone              deleted, or no longer valid
    │   ├── EmptyText               nothing to embed
    │   ├── InputRefused            400, 413, 422
    │   └── InputTooLarge           one input over the provider's limit
    └── CriticalError               a person has to act
        ├── StoreFull
        ├── StoreReadOnly
        ├── StoreCorrupted
        ├── StoreBroken             it has been breaking at every answer for too long
        ├── StoreAccessDenied
        ├── SchemaMissing           tables, constraints or indexes are not there
        ├── CredentialsRefused      401, 403, revoked key, closed account
        ├── ModelNotFound           404
        ├── SettingsRefused         400 for what every request asks, whatever its texts
        ├── ModelNotActive          the configured model was never started for this graph
        └── QuotaExhausted          `insufficient_quota`, an account that is not paid for

Losing a lease is no error: the stores report the lost jobs in `Settled.lost`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from enum import StrEnum
from typing import ClassVar


class ErrorCategory(StrEnum):
    """What kind of error it is; what happens to the job is a `Verdict`."""

    TRANSIENT = "TRANSIENT"
    PERMANENT = "PERMANENT"
    CRITICAL = "CRITICAL"


class EmbedPipelineError(Exception):
    """Base of all; `category` is TRANSIENT for what nobody has classified."""

    category: ClassVar[ErrorCategory] = ErrorCategory.TRANSIENT


class ConfigurationError(EmbedPipelineError):
    """All unusable settings at once, a sentence each."""

    category = ErrorCategory.CRITICAL

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class RequestError(EmbedPipelineError):
    """The caller asked for something that cannot be done as asked."""

    category = ErrorCategory.PERMANENT


class EntityNotFound(RequestError):
    """No valid entity has that name or key."""


class TransientError(EmbedPipelineError):
    """May pass by itself."""

    category = ErrorCategory.TRANSIENT


class StoreBusy(TransientError):
    """Somebody else held the database for longer than we wait."""


class StoreOverloaded(StoreBusy):
    """The database has no memory for all that was asked of it at once; less may do."""


class PageTooLarge(StoreOverloaded):
    """The database has no memory for this, though it takes other writes."""


class StoreUnavailable(TransientError):
    """The database cannot be reached or opened."""


class StoreFaltered(StoreUnavailable):
    """The database broke while answering, as one does that is stopped meanwhile."""


class ProviderUnavailable(TransientError):
    """The provider could not be reached, or broke while answering."""


class ProviderTimeout(ProviderUnavailable):
    """The provider did not answer in time."""


class RateLimited(TransientError):
    """The provider asks everybody to wait."""

    def __init__(self, message: str, *, retry_after: timedelta | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class MalformedResponse(TransientError):
    """The provider answered with wrong counts, dimensions or numbers."""


class PermanentError(EmbedPipelineError):
    """Will fail again for this job."""

    category = ErrorCategory.PERMANENT


class EntityGone(PermanentError):
    """The entity was deleted or is no longer valid."""


class EmptyText(PermanentError):
    """The entity has no text to embed."""


class InputRefused(PermanentError):
    """The provider refuses this request; in a batch, some input of it."""


class InputTooLarge(PermanentError):
    """The request is larger than the provider takes."""


class CriticalError(EmbedPipelineError):
    """A person has to act before work goes on."""

    category = ErrorCategory.CRITICAL


class StoreFull(CriticalError):
    """The database's disk is full."""


class StoreReadOnly(CriticalError):
    """The database cannot be written."""


class StoreCorrupted(CriticalError):
    """The database is damaged, or is no database."""


class StoreBroken(CriticalError):
    """The database has been breaking at every answer for longer than a restart takes."""


class StoreAccessDenied(CriticalError):
    """The database refuses our credentials."""


class SchemaMissing(CriticalError):
    """Tables, constraints or indexes are not there, or of another version."""


class CredentialsRefused(CriticalError):
    """The provider refuses our key."""


class ModelNotFound(CriticalError):
    """The provider does not know the model."""


class SettingsRefused(CriticalError):
    """The provider refuses what the settings ask of it, whatever the texts."""


class ModelNotActive(CriticalError):
    """The graph does not use the configured model; a run never starts one."""


class QuotaExhausted(CriticalError):
    """The provider's quota is used up; waiting does not help."""
