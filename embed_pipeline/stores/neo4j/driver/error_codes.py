"""Which of our errors a Neo4j status code is.

By code, not by the driver's classes: to the driver a read-only database is a transient error and
a transaction that timed out is a client error.
"""

from __future__ import annotations

from embed_pipeline.errors import (
    EmbedPipelineError,
    RequestError,
    SchemaMissing,
    StoreAccessDenied,
    StoreBusy,
    StoreCorrupted,
    StoreFaltered,
    StoreFull,
    StoreOverloaded,
    StoreReadOnly,
    StoreUnavailable,
)

Fault = tuple[type[EmbedPipelineError], str]
"""The error, and the rest of the sentence that begins with the database's name."""

_DENIED: Fault = (StoreAccessDenied, "refuses the credentials")
_DAMAGED: Fault = (StoreCorrupted, "is damaged")
_READ_ONLY: Fault = (StoreReadOnly, "is read-only")
_FULL: Fault = (StoreFull, "cannot write its log: the disk is full, or it needs a restart")
_BUSY: Fault = (StoreBusy, "is too busy: a lock or a slow transaction was in the way")
_OVERLOADED: Fault = (
    StoreOverloaded,
    "has no memory left for a transaction: see its dbms.memory.transaction.total.max, or its heap",
)
_AWAY: Fault = (StoreUnavailable, "is not available")
_LOCKED_OUT: Fault = (
    StoreUnavailable,
    "lets this user in only after a pause: wrong passwords were tried too often",
)
_TOO_LARGE: Fault = (RequestError, "cannot index a value of more than about 8 kB")
_FALTERED: Fault = (StoreFaltered, "broke while answering")

_BY_CODE: dict[str, Fault] = {
    "Neo.ClientError.Database.DatabaseNotFound": (SchemaMissing, "does not exist"),
    "Neo.ClientError.General.ForbiddenOnReadOnlyDatabase": _READ_ONLY,
    "Neo.ClientError.General.WriteOnReadOnlyAccessDatabase": _READ_ONLY,
    "Neo.ClientError.General.DatabaseUnavailable": _AWAY,
    "Neo.ClientError.Cluster.NotALeader": _AWAY,
    "Neo.ClientError.Transaction.Terminated": _BUSY,
    "Neo.ClientError.Transaction.LockClientStopped": _BUSY,
    "Neo.ClientError.Procedure.ProcedureTimedOut": _BUSY,
    "Neo.ClientError.Security.AuthProviderTimeout": _AWAY,
    # Wrong passwords of any client lock the user for seconds; a wrong one of ours is denied before.
    "Neo.ClientError.Security.AuthenticationRateLimit": _LOCKED_OUT,
    "Neo.DatabaseError.General.IndexCorruptionDetected": _DAMAGED,
    "Neo.DatabaseError.General.SchemaCorruptionDetected": _DAMAGED,
    "Neo.DatabaseError.General.StorageDamageDetected": _DAMAGED,
    "Neo.DatabaseError.Database.UnableToStartDatabase": _DAMAGED,
    # What a full disk is at first; after that every transaction fails to start.
    "Neo.DatabaseError.Transaction.TransactionLogError": _FULL,
    "Neo.DatabaseError.Transaction.TransactionCommitFailed": _FULL,
    "Neo.DatabaseError.General.UnknownError": _FALTERED,
    "Neo.DatabaseError.Statement.ExecutionFailed": _FALTERED,
}

_BY_PREFIX: tuple[tuple[str, Fault], ...] = (
    ("Neo.ClientError.Security.", _DENIED),
    ("Neo.ClientError.Transaction.TransactionTimedOut", _BUSY),
    ("Neo.TransientError.Transaction.", _BUSY),
    ("Neo.TransientError.General.MemoryPool", _OVERLOADED),
    ("Neo.TransientError.General.OutOfMemory", _OVERLOADED),
    ("Neo.TransientError.General.TransactionMemoryLimit", _OVERLOADED),
    ("Neo.TransientError.", _AWAY),
)

TOO_LARGE = "too large to index"
_SCHEMA = ("Neo.DatabaseError.Schema.", "Neo.ClientError.Schema.")
_START_FAILED = "Neo.DatabaseError.Transaction.TransactionStartFailed"
_BROKEN_DOWN = "needs to be restarted"
_OUR_BUG = "implicit transaction"
"""A statement with its own transactions, sent inside one of ours."""


def fault_of(code: str, message: str) -> Fault | None:
    """None where the database is not at fault: a bug of ours, or data that it cannot store."""
    if TOO_LARGE in message:
        return _TOO_LARGE
    if code in _BY_CODE:
        return _BY_CODE[code]
    for prefix, fault in _BY_PREFIX:
        if code.startswith(prefix):
            return fault
    if code == _START_FAILED and _OUR_BUG not in message:
        return _FULL if _BROKEN_DOWN in message else _AWAY
    # A constraint's own violation belongs to the statement; creating one belongs to the schema.
    if code.startswith(_SCHEMA) and not code.endswith("ConstraintValidationFailed"):
        return SchemaMissing, f"cannot take the schema: {message.rstrip('.')}"
    return None
