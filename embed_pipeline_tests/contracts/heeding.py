"""What a provider says is left of its own limits lowers the shared budget, and never raises it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from embed_pipeline.domain.window import RateLimit, RemainingQuota, Spent
from embed_pipeline.ports.rate_limiter import RateLimiter
from embed_pipeline_tests.clocks import MINUTE, SECOND, FakeClock
from embed_pipeline_tests.contracts.job_store.scene import QueueBackend
from embed_pipeline_tests.contracts.rate_limiter import THREE_A_MINUTE, denied, granted

TEN_A_MINUTE = RateLimit(requests=10, interval=MINUTE, tokens=1_000)
WRITING = ("write", "BEGIN IMMEDIATE", "INSERT", "UPDATE", "DELETE")
"""How the queries begin that change something, or lock out those who would."""


class HeedingContract:
    @pytest.fixture
    def limiter(self, backend: QueueBackend) -> RateLimiter:
        return backend.open_limiter(provider="openai", limit=TEN_A_MINUTE)

    def test_what_others_have_spent_is_spent_for_everybody(
        self, backend: QueueBackend, limiter: RateLimiter
    ) -> None:
        other = backend.open_limiter(provider="openai", limit=TEN_A_MINUTE)
        granted(limiter, Spent(requests=1, tokens=100))

        limiter.apply_provider_limits(RemainingQuota(requests=2, tokens=300))

        left = other.allowance()
        assert (left.requests, left.tokens, left.back_at) == (2, 300, None)
        granted(other, Spent(requests=1, tokens=300))
        denied(other, Spent(requests=1, tokens=1))

    def test_what_was_heard_twice_is_spent_once(
        self, backend: QueueBackend, limiter: RateLimiter
    ) -> None:
        other = backend.open_limiter(provider="openai", limit=TEN_A_MINUTE)

        limiter.apply_provider_limits(RemainingQuota(requests=4))
        other.apply_provider_limits(RemainingQuota(requests=4))

        assert limiter.allowance().requests == 4

    def test_a_provider_with_more_left_changes_nothing(self, limiter: RateLimiter) -> None:
        for _ in range(3):
            granted(limiter)
        before = limiter.allowance()

        limiter.apply_provider_limits(RemainingQuota(requests=7, tokens=1_000))
        limiter.apply_provider_limits(
            RemainingQuota(requests=9_999, tokens=9_999_999, back_in=MINUTE)
        )
        limiter.apply_provider_limits(RemainingQuota())

        assert limiter.allowance() == before

    def test_hearing_nothing_new_writes_nothing(
        self, backend: QueueBackend, limiter: RateLimiter
    ) -> None:
        granted(limiter)
        limiter.apply_provider_limits(RemainingQuota(requests=5))

        with backend.counting_queries() as queries:
            limiter.apply_provider_limits(RemainingQuota(requests=5, tokens=1_000, back_in=MINUTE))

        assert not [query for query in queries if query.startswith(WRITING)]

    def test_a_correction_counts_a_whole_interval_where_nothing_else_is_said(
        self, limiter: RateLimiter, clock: FakeClock
    ) -> None:
        limiter.apply_provider_limits(RemainingQuota(requests=2))

        clock.advance(TEN_A_MINUTE.counted)
        assert limiter.allowance().requests == 2
        clock.advance(TEN_A_MINUTE.sub_bucket)

        assert limiter.allowance().requests == 10

    @pytest.mark.parametrize(("said", "kept"), [(0, 0), (5, 5), (30, 30), (600, 62)])
    def test_a_correction_counts_until_the_provider_has_it_back(
        self, limiter: RateLimiter, clock: FakeClock, said: int, kept: int
    ) -> None:
        moment = timedelta(milliseconds=1)
        granted(limiter)

        limiter.apply_provider_limits(RemainingQuota(requests=2, back_in=said * SECOND))

        clock.advance(max(timedelta(), kept * SECOND - moment))
        assert limiter.allowance().requests == 2
        clock.advance(2 * SECOND + moment)
        assert (limiter.allowance().requests or 0) >= 9

    def test_nothing_left_pauses_everybody_until_it_is_back(
        self, backend: QueueBackend, limiter: RateLimiter, clock: FakeClock
    ) -> None:
        other = backend.open_limiter(provider="openai", limit=TEN_A_MINUTE)

        limiter.apply_provider_limits(RemainingQuota(requests=0, tokens=500, back_in=20 * SECOND))

        assert denied(other).retry_at == clock.now() + 20 * SECOND
        clock.advance(20 * SECOND)
        assert other.allowance().requests == 10

    def test_nothing_left_of_what_we_do_not_count_pauses_too(
        self, backend: QueueBackend, clock: FakeClock
    ) -> None:
        limiter = backend.open_limiter(provider="openai", limit=THREE_A_MINUTE)

        limiter.apply_provider_limits(RemainingQuota(requests=2_999, tokens=0, back_in=5 * SECOND))

        assert denied(limiter).retry_at == clock.now() + 5 * SECOND

    def test_nothing_left_without_a_time_is_spent(self, limiter: RateLimiter) -> None:
        limiter.apply_provider_limits(RemainingQuota(requests=0))

        denied(limiter)

    def test_nothing_left_on_both_sides_waits_for_our_own_window(
        self, limiter: RateLimiter, clock: FakeClock
    ) -> None:
        granted(limiter)
        clock.advance(30 * SECOND)
        for _ in range(9):
            granted(limiter)

        limiter.apply_provider_limits(RemainingQuota(requests=0, back_in=MINUTE))

        clock.advance(TEN_A_MINUTE.counted + TEN_A_MINUTE.sub_bucket - 30 * SECOND)
        granted(limiter)

    def test_a_longer_pause_is_kept(self, limiter: RateLimiter, clock: FakeClock) -> None:
        limiter.pause(MINUTE)

        limiter.apply_provider_limits(RemainingQuota(requests=0, back_in=SECOND))

        assert denied(limiter).retry_at == clock.now() + MINUTE

    def test_a_budget_of_others_is_left_alone(
        self, backend: QueueBackend, limiter: RateLimiter
    ) -> None:
        other = backend.open_limiter(provider="azure", limit=TEN_A_MINUTE)

        limiter.apply_provider_limits(RemainingQuota(requests=0, back_in=MINUTE))

        granted(other)
