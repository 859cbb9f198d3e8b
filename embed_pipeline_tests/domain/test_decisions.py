"""The pure decisions: retry, recovery, company, admission."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embed_pipeline.domain.job import (
    ENTITY_GONE,
    Again,
    EmbedJob,
    Enqueued,
    EntityUid,
    JobId,
    JobStatus,
)
from embed_pipeline.domain.lease import Tier, batch_limit, tier_of
from embed_pipeline.domain.recovery import Fate, RecoveryPolicy, fate_of
from embed_pipeline.domain.transition import Change, KnownJob, RetryPolicy, admit, after_failure
from embed_pipeline.errors import ErrorCategory
from embed_pipeline_tests.contracts.job_store.scene import failure, request

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def job(
    *, attempts: int = 0, recoveries: int = 0, recovered_at: datetime | None = None
) -> EmbedJob:
    return EmbedJob(
        id=JobId("j1"),
        entity_uid=EntityUid("e1"),
        model="mock/mock@64",
        version="v1",
        status=JobStatus.PROCESSING,
        priority=5,
        created_at=NOW,
        available_at=NOW,
        attempts=attempts,
        recoveries=recoveries,
        recovered_at=recovered_at,
    )


@pytest.mark.parametrize(
    ("category", "attempts", "status"),
    [
        (ErrorCategory.TRANSIENT, 0, JobStatus.PENDING),
        (ErrorCategory.TRANSIENT, 1, JobStatus.PENDING),
        (ErrorCategory.TRANSIENT, 2, JobStatus.FAILED),
        (ErrorCategory.PERMANENT, 0, JobStatus.FAILED),
    ],
)
def test_failure_follows_the_category_and_the_attempts(
    category: ErrorCategory, attempts: int, status: JobStatus
) -> None:
    after = after_failure(
        job(attempts=attempts), failure(category), policy=RetryPolicy(), now=NOW, chance=0
    )

    assert (after["status"], after["attempts"]) == (status, attempts + 1)


def test_backoff_doubles_from_one_second() -> None:
    waits = [RetryPolicy().backoff(attempt, chance=0).total_seconds() for attempt in (1, 2, 3, 4)]

    assert waits == [1, 2, 4, 8]


@given(attempt=st.integers(1, 10_000), chance=st.floats(0, 1))
def test_backoff_never_passes_its_ceiling_and_jitter(attempt: int, chance: float) -> None:
    policy = RetryPolicy()

    assert policy.base <= policy.backoff(attempt, chance=chance) <= policy.ceiling * 1.25


@pytest.mark.parametrize(
    ("recoveries", "last_success", "fate"),
    [
        (0, None, Fate.PENDING),
        (3, NOW + HOUR, Fate.PENDING),
        (4, NOW + HOUR, Fate.FAILED),
        (4, NOW, Fate.FAILED),
        (4, NOW - HOUR, Fate.WAITING),
        (4, None, Fate.WAITING),
        (13, None, Fate.WAITING),
        (14, None, Fate.FAILED),
    ],
)
def test_fifth_recovery_ends_a_job_only_while_others_complete(
    recoveries: int, last_success: datetime | None, fate: Fate
) -> None:
    stuck = job(recoveries=recoveries, recovered_at=NOW)

    assert fate_of(stuck, policy=RecoveryPolicy(), last_success_at=last_success) is fate


@pytest.mark.parametrize(
    ("strikes", "tier", "most"),
    [
        (0, Tier.NORMAL, 2_000),
        (1, Tier.NORMAL, 2_000),
        (2, Tier.SMALL, 16),
        (3, Tier.SMALL, 16),
        (4, Tier.SOLO, 1),
        (9, Tier.SOLO, 1),
    ],
)
def test_company_shrinks_with_the_strikes(strikes: int, tier: Tier, most: int) -> None:
    assert tier_of(strikes) is tier
    assert batch_limit(tier, 2_000) == most


@pytest.mark.parametrize(
    ("status", "fail_code", "embedded", "force", "expected"),
    [
        (JobStatus.PENDING, None, False, False, (Enqueued.QUEUED, Change.NONE)),
        (JobStatus.PENDING, None, False, True, (Enqueued.QUEUED, Change.EXPEDITE)),
        (JobStatus.PROCESSING, None, False, False, (Enqueued.QUEUED, Change.REPEAT)),
        (JobStatus.COMPLETED, None, True, False, (Enqueued.EMBEDDED, Change.NONE)),
        (JobStatus.COMPLETED, None, False, False, (Enqueued.REVIVED, Change.REVIVE)),
        (JobStatus.FAILED, None, False, False, (Enqueued.PARKED, Change.NONE)),
        (JobStatus.FAILED, None, True, False, (Enqueued.EMBEDDED, Change.NONE)),
        (JobStatus.FAILED, ENTITY_GONE, False, False, (Enqueued.REVIVED, Change.REVIVE)),
        (JobStatus.FAILED, None, False, True, (Enqueued.REVIVED, Change.REVIVE)),
    ],
)
def test_admission_of_a_known_key(
    status: JobStatus,
    fail_code: str | None,
    embedded: bool,
    force: bool,
    expected: tuple[Enqueued, Change],
) -> None:
    asked = request("e1", embedded=embedded, force=force)

    met = KnownJob(JobId("j1"), status, fail_code, 5, NOW, Again.NO)

    assert admit(asked, met) == expected


def test_admission_of_a_new_key() -> None:
    assert admit(request(), None) == (Enqueued.CREATED, Change.CREATE)
    assert admit(request(embedded=True), None) == (Enqueued.EMBEDDED, Change.NONE)
    assert admit(request(embedded=True, force=True), None) == (Enqueued.CREATED, Change.CREATE)
