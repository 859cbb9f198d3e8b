"""The pure values that workers share: window, breaker, health."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from embed_pipeline.domain.breaker import (
    Breaker,
    closed,
    pause_at,
    probe_claimed,
    probe_given_back,
    tripped,
)
from embed_pipeline.domain.control import Switch, SwitchState
from embed_pipeline.domain.health import (
    HealthChange,
    HealthRecord,
    HealthStatus,
    after_failures,
    after_success,
    pattern_of,
    report,
)
from embed_pipeline.domain.job import FailureRecord
from embed_pipeline.domain.window import SUB_BUCKETS, Grant, RateLimit, Spent, Window
from embed_pipeline.errors import ErrorCategory

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MILLISECOND = timedelta(milliseconds=1)


def failure(message: str = "connection reset") -> FailureRecord:
    return FailureRecord(
        category=ErrorCategory.TRANSIENT, error_type="ProviderUnavailable", message=message
    )


@given(milliseconds=st.integers(1_000, 86_400_000), allowance=st.integers(0, 60_000))
def test_sixty_sub_buckets_are_never_shorter_than_what_is_counted(
    milliseconds: int, allowance: int
) -> None:
    limit = RateLimit(
        requests=1, interval=milliseconds * MILLISECOND, allowance=allowance * MILLISECOND
    )

    assert limit.sub_bucket * SUB_BUCKETS >= limit.counted
    assert limit.counted == limit.interval + limit.grant_lasts + limit.allowance


@given(
    steps=st.lists(
        st.tuples(st.none() | st.integers(0, 3_000), st.integers(1, 40), st.floats(0, 1))
    ),
    interval=st.sampled_from([1_000, 2_000, 60_000]),
    allowance=st.sampled_from([0, 250, 1_000, 5_000]),
    requests=st.integers(1, 6),
)
def test_any_window_at_the_provider_holds_at_most_the_limit(
    steps: list[tuple[int | None, int, float]], interval: int, allowance: int, requests: int
) -> None:
    """A request arrives as late as its grant and the allowance permit, or earlier.

    A step waits some milliseconds, or until the first time that fits.
    """
    limit = RateLimit(
        requests=requests,
        tokens=100,
        interval=interval * MILLISECOND,
        allowance=allowance * MILLISECOND,
    )
    window = Window()
    arrivals: list[tuple[datetime, int]] = []
    now = NOW
    for number, (wait, tokens, lateness) in enumerate(steps):
        cost = Spent(requests=1, tokens=tokens)
        free_from = window.free_from(limit, cost, now)
        now = free_from if wait is None else now + wait * MILLISECOND
        if window.free_from(limit, cost, now) <= now:
            grant = Grant(id=str(number), cost=cost, bucket=limit.bucket_at(now))
            window = window.with_grant(grant, limit, now)
            arrivals.append((now + lateness * (limit.grant_lasts + limit.allowance), tokens))

    for start, _ in arrivals:
        inside = [tokens for at, tokens in arrivals if start <= at <= start + limit.interval]
        assert len(inside) <= requests
        assert sum(inside) <= 100


@given(spent=st.integers(0, 20), waited=st.integers(0, 59_000))
def test_free_from_is_the_first_moment_that_fits(spent: int, waited: int) -> None:
    limit = RateLimit(requests=5, interval=timedelta(minutes=1))
    window = Window(buckets={limit.bucket_at(NOW): Spent(requests=spent)})
    now = NOW + timedelta(milliseconds=waited)

    free_from = window.free_from(limit, Spent(requests=1), now)

    fits_then = window.spent(limit, free_from).requests + 1 <= limit.requests
    just_before = free_from - timedelta(microseconds=1)
    assert fits_then
    assert free_from == now or window.spent(limit, just_before).requests + 1 > limit.requests


def test_paused_window_is_free_when_the_pause_ends() -> None:
    limit = RateLimit(requests=5, interval=timedelta(minutes=1))
    window = Window(buckets={}, paused_until=NOW + 20 * SECOND)

    assert window.free_from(limit, Spent(requests=1), NOW) == NOW + 20 * SECOND


def test_pauses_double_from_one_second_to_a_minute() -> None:
    assert [pause_at(level).total_seconds() for level in range(1, 9)] == [
        1, 2, 4, 8, 16, 32, 60, 60,
    ]  # fmt: skip


def test_breaker_counts_only_results_of_its_own_generation() -> None:
    first = tripped(Breaker(name="openai"), seen=0, now=NOW, reason="down")

    assert tripped(first, seen=0, now=NOW, reason="down") is first
    assert closed(first, seen=0) is first
    assert not closed(first, seen=first.generation).is_open


def test_probe_is_there_only_after_the_pause_and_once() -> None:
    breaker = tripped(Breaker(name="openai"), seen=0, now=NOW, reason="down")

    early = probe_claimed(breaker, now=NOW)
    claimed = probe_claimed(breaker, now=NOW + SECOND)

    assert early is None
    assert claimed is not None
    assert probe_claimed(claimed, now=NOW + SECOND) is None
    assert probe_claimed(Breaker(name="openai"), now=NOW) is None


def test_claim_leaves_the_result_of_an_earlier_prober_its_weight() -> None:
    opened = tripped(Breaker(name="openai"), seen=0, now=NOW, reason="down")
    first = probe_claimed(opened, now=NOW + SECOND)
    assert first is not None
    second = probe_claimed(first, now=NOW + 2 * SECOND)
    assert second is not None

    failed = tripped(second, seen=first.generation, now=NOW + 3 * SECOND, reason="still")

    assert not closed(second, seen=first.generation).is_open
    assert (failed.level, failed.until) == (2, NOW + 5 * SECOND)
    assert tripped(failed, seen=second.generation, now=NOW, reason="too late") is failed


def test_probe_given_back_frees_the_next_without_closing() -> None:
    opened = tripped(Breaker(name="openai"), seen=0, now=NOW, reason="down")
    claimed = probe_claimed(opened, now=NOW + SECOND)
    assert claimed is not None

    free = probe_given_back(claimed, seen=claimed.generation, now=NOW + SECOND)

    assert free.is_open
    assert probe_claimed(free, now=NOW + SECOND) is not None
    assert probe_given_back(claimed, seen=0, now=NOW + SECOND) is claimed
    assert probe_given_back(free, seen=free.generation, now=NOW + 2 * SECOND) is free


def test_fifth_failure_in_a_row_degrades() -> None:
    record = HealthRecord()
    changes = []
    for _ in range(6):
        record, change = after_failures(record, [failure()])
        changes.append(change)

    assert changes.index(HealthChange.DEGRADED) == 4
    assert changes.count(HealthChange.DEGRADED) == 1


def test_many_failures_at_once_degrade_too() -> None:
    _, change = after_failures(HealthRecord(), [failure()] * 7)

    assert change is HealthChange.DEGRADED


def test_success_without_trouble_is_no_recovery() -> None:
    _, change = after_success(HealthRecord(), now=NOW, count=1)

    assert change is HealthChange.NONE


def test_pattern_forgets_what_differs_from_job_to_job() -> None:
    one = pattern_of(failure("timeout after 61 s for 0123456789abcdef"))
    other = pattern_of(failure("timeout after 7 s for fedcba9876543210"))

    assert one == other


def test_worst_reason_decides_and_all_are_told() -> None:
    record, _ = after_failures(HealthRecord(), [failure()] * 5)
    breaker = tripped(Breaker(name="openai"), seen=0, now=NOW, reason="down")
    halted = Switch(state=SwitchState.HALTED, reason="key revoked")

    told = report(record, switch=halted, breakers=[breaker])

    assert told.status is HealthStatus.CRITICAL
    assert told.reasons == (
        "halted: key revoked",
        "5 consecutive failures",
        "breaker of openai is open: down",
    )


def test_pause_alone_is_no_illness() -> None:
    paused = Switch(state=SwitchState.PAUSED, reason="lunch")

    told = report(HealthRecord(), switch=paused, breakers=[])

    assert (told.status, told.reasons) == (HealthStatus.HEALTHY, ("paused: lunch",))
