"""The reaper's decisions, which need no database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embed_pipeline.reaper.policy import (
    Backoff,
    Fail,
    ReaperPolicy,
    Requeue,
    StageLeases,
    StuckJob,
    decide,
)

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
POLICY = ReaperPolicy()


@pytest.mark.parametrize(
    ("attempt", "seconds"), [(0, 30), (1, 30), (2, 120), (3, 600), (4, 600), (99, 600)]
)
def test_ladder_is_30_seconds_2_minutes_10_minutes_and_then_repeats(
    attempt: int, seconds: int
) -> None:
    assert Backoff().after(attempt) == seconds * SECOND


@pytest.mark.parametrize(
    ("attempt", "seconds"), [(0, 1), (1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (10**9, 10)]
)
def test_base_and_maximum_replace_the_ladder_by_doubling(attempt: int, seconds: int) -> None:
    assert Backoff(base=SECOND, ceiling=10 * SECOND).after(attempt) == seconds * SECOND


@pytest.mark.parametrize(
    ("stage", "minutes"),
    [("clip", 5), ("asr", 15), ("burnin", 20), ("thumbnail", 30), ("CLIP", 30), (None, 30)],
)
def test_unknown_stage_and_none_have_the_default_lease(stage: str | None, minutes: int) -> None:
    leases = StageLeases(burnin=20 * MINUTE, default=30 * MINUTE)

    assert leases.of(stage) == minutes * MINUTE


@pytest.mark.parametrize(
    ("attempts", "maximum", "decision"),
    [
        (1, 3, Requeue(after=30 * SECOND)),
        (2, 3, Requeue(after=120 * SECOND)),
        (3, 3, Fail(code="timeout", reason="lease_expired")),
        (4, 3, Fail()),
        (None, None, Requeue(after=30 * SECOND)),
        (4, None, Requeue(after=600 * SECOND)),
        (5, None, Fail()),
        (None, 0, Fail()),
        (0, 1, Requeue(after=30 * SECOND)),
    ],
)
def test_expired_lease_means_requeue_below_the_maximum_and_the_end_at_it(
    attempts: int | None, maximum: int | None, decision: Requeue | Fail
) -> None:
    job = StuckJob(
        stage="clip",
        attempt_count=attempts,
        max_attempts=maximum,
        lease_expires_at=NOW - SECOND,
    )

    assert decide(job, now=NOW, policy=POLICY) == decision


def test_lease_that_ends_right_now_is_still_alive() -> None:
    job = StuckJob(lease_expires_at=NOW)

    assert decide(job, now=NOW, policy=POLICY) is None
    assert decide(job, now=NOW + timedelta(microseconds=1), policy=POLICY) is not None


def test_a_lease_counts_and_not_an_old_heartbeat() -> None:
    job = StuckJob(lease_expires_at=NOW + SECOND, last_heartbeat_at=NOW - timedelta(days=9))

    assert decide(job, now=NOW, policy=POLICY) is None


def test_without_lease_the_last_heartbeat_and_three_leases_of_the_stage_count() -> None:
    job = StuckJob(stage="asr", last_heartbeat_at=NOW - 45 * MINUTE)

    assert job.lease_end(POLICY.leases) == NOW
    assert decide(job, now=NOW, policy=POLICY) is None
    assert decide(job, now=NOW + SECOND, policy=POLICY) == Requeue(after=30 * SECOND)


def test_row_with_neither_is_left_alone_forever() -> None:
    job = StuckJob(stage="clip", attempt_count=99)

    assert decide(job, now=NOW + timedelta(days=9999), policy=POLICY) is None


@given(
    attempts=st.none() | st.integers(0, 200),
    maximum=st.none() | st.integers(0, 200),
    base=st.none() | st.timedeltas(min_value=SECOND, max_value=MINUTE),
)
def test_an_expired_job_always_gets_a_wait_or_an_end(
    attempts: int | None, maximum: int | None, base: timedelta | None
) -> None:
    policy = ReaperPolicy(backoff=Backoff(base=base))
    job = StuckJob(attempt_count=attempts, max_attempts=maximum, lease_expires_at=NOW - SECOND)

    decision = decide(job, now=NOW, policy=policy)

    if isinstance(decision, Requeue):
        assert (attempts or 0) < (5 if maximum is None else maximum)
        assert timedelta(0) < decision.after <= 10 * MINUTE
    else:
        assert decision == Fail()
