"""Which error a status code becomes: codes as 5.26.29 and 2026.09.0 gave them, or their docs do."""

from __future__ import annotations

import pytest

from embed_pipeline.errors import (
    CriticalError,
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
    TransientError,
)
from embed_pipeline.stores.neo4j.driver.error_codes import fault_of

BROKEN_DOWN = "The database has encountered a critical error, and needs to be restarted."
IMPLICIT = (
    "A query with 'CALL { ... } IN TRANSACTIONS' can only be executed in an implicit transaction"
)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("Neo.ClientError.Security.Unauthorized", StoreAccessDenied),
        ("Neo.ClientError.Security.CredentialsExpired", StoreAccessDenied),
        ("Neo.ClientError.Security.AuthenticationRateLimit", StoreUnavailable),
        ("Neo.ClientError.Security.Forbidden", StoreAccessDenied),
        ("Neo.ClientError.Security.TokenExpired", StoreAccessDenied),
        # The driver calls the first of these transient.
        ("Neo.ClientError.General.ForbiddenOnReadOnlyDatabase", StoreReadOnly),
        ("Neo.ClientError.General.WriteOnReadOnlyAccessDatabase", StoreReadOnly),
        ("Neo.DatabaseError.Transaction.TransactionLogError", StoreFull),
        ("Neo.DatabaseError.Transaction.TransactionCommitFailed", StoreFull),
        ("Neo.DatabaseError.General.StorageDamageDetected", StoreCorrupted),
        ("Neo.DatabaseError.General.IndexCorruptionDetected", StoreCorrupted),
        ("Neo.DatabaseError.General.SchemaCorruptionDetected", StoreCorrupted),
        ("Neo.DatabaseError.Database.UnableToStartDatabase", StoreCorrupted),
        ("Neo.ClientError.Database.DatabaseNotFound", SchemaMissing),
        ("Neo.DatabaseError.Schema.ConstraintCreationFailed", SchemaMissing),
        ("Neo.ClientError.Schema.IndexAlreadyExists", SchemaMissing),
        ("Neo.TransientError.Transaction.DeadlockDetected", StoreBusy),
        ("Neo.TransientError.Transaction.LockAcquisitionTimeout", StoreBusy),
        ("Neo.ClientError.Transaction.TransactionTimedOut", StoreBusy),
        ("Neo.ClientError.Transaction.TransactionTimedOutClientConfiguration", StoreBusy),
        ("Neo.TransientError.General.MemoryPoolOutOfMemoryError", StoreOverloaded),
        ("Neo.TransientError.General.OutOfMemoryError", StoreOverloaded),
        ("Neo.TransientError.General.TransactionMemoryLimit", StoreOverloaded),
        ("Neo.TransientError.General.DatabaseUnavailable", StoreUnavailable),
        ("Neo.TransientError.Database.DatabaseUnavailable", StoreUnavailable),
        ("Neo.DatabaseError.Statement.ExecutionFailed", StoreFaltered),
        ("Neo.DatabaseError.General.UnknownError", StoreFaltered),
    ],
)
def test_a_code_has_a_name_of_ours(code: str, kind: type[EmbedPipelineError]) -> None:
    fault = fault_of(code, "as the server says it")

    assert fault is not None
    assert fault[0] is kind


def test_a_value_too_large_to_index_is_the_callers_mistake() -> None:
    fault = fault_of(
        "Neo.DatabaseError.Statement.ExecutionFailed", "Property value is too large to index."
    )

    assert fault is not None
    assert fault[0] is RequestError


def test_a_database_that_broke_down_after_a_full_disk_needs_a_person() -> None:
    code = "Neo.DatabaseError.Transaction.TransactionStartFailed"

    broken, starting, bug = (fault_of(code, said) for said in (BROKEN_DOWN, "not yet", IMPLICIT))

    assert broken is not None
    assert issubclass(broken[0], CriticalError)
    assert starting is not None
    assert issubclass(starting[0], TransientError)
    assert bug is None


@pytest.mark.parametrize(
    "code",
    [
        "Neo.ClientError.Statement.SyntaxError",
        "Neo.ClientError.Statement.TypeError",
        "Neo.ClientError.Statement.AccessMode",
        "Neo.ClientError.Procedure.ProcedureNotFound",
        "Neo.ClientError.Schema.ConstraintValidationFailed",
    ],
)
def test_a_bug_of_ours_has_none(code: str) -> None:
    assert fault_of(code, "as the server says it") is None


def test_the_servers_own_words_are_kept_when_it_refuses_a_constraint() -> None:
    fault = fault_of(
        "Neo.DatabaseError.Schema.ConstraintCreationFailed",
        "Both Node(1) and Node(2) have the label `D` and property `k` = 1.",
    )

    assert fault is not None
    assert "Both Node(1) and Node(2)" in fault[1]
