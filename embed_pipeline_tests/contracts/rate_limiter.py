"""The rate limiter: never more than N in any window, whoever asks (I13)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from embed_pipeline.domain.window import Denied, Grant, RateLimit, Spent
from embed_pipeline.ports.rate_limiter import RateLimiter
from embed_pipeline_tests.clocks import MINUTE, SECOND, FakeClock
from embed_pipeline_tests.contracts.job_store.scene import QueueBackend

ONE = Spent(requests=1)
THREE_A_MINUTE = RateLimit(requests=3, interval=MINUTE)


def granted(limiter: RateLimiter, cost: Spent = ONE) -> Grant:
    grant = limiter.take(cost)
    assert isinstance(grant, Grant)
    return grant


def denied(limiter: RateLimiter, cost: Spent = ONE) -> Denied:
    denial = limiter.take(cost)
    assert isinstance(denial, Denied)
    return denial


class RateLimiterContract:
    @pytest.fixture
    def limiter(self, backend: QueueBackend) -> RateLimiter:
        return backend.open_limiter(provider="openai", limit=THREE_A_MINUTE)

    def test_limit_is_granted_and_no_more(self, limiter: RateLimiter) -> None:
        for _ in range(3):
            granted(limiter)

        denied(limiter)

    def test_denied_taker_is_told_when_it_fits(
        self, limiter: RateLimiter, clock: FakeClock
    ) -> None:
        for _ in range(3):
            granted(limiter)

        retry_at = denied(limiter).retry_at
        clock.advance(retry_at - clock.now() - timedelta(microseconds=1))
        denied(limiter)
        clock.advance(timedelta(microseconds=1))

        granted(limiter)

    def test_grant_counts_until_any_interval_at_the_provider_is_over(
        self, limiter: RateLimiter, clock: FakeClock
    ) -> None:
        """A request may arrive a grant's lifetime and the allowance after its grant."""
        limit = THREE_A_MINUTE
        for _ in range(3):
            granted(limiter)

        clock.advance(limit.grant_lasts + limit.allowance + limit.interval)
        denied(limiter)
        clock.advance(limit.sub_bucket)

        granted(limiter)

    def test_refill_does_not_admit_twice_the_limit(
        self, limiter: RateLimiter, clock: FakeClock
    ) -> None:
        granted(limiter)
        clock.advance(61 * SECOND)
        granted(limiter)
        granted(limiter)
        clock.advance(3 * SECOND)

        # The first has left the window, the two of three seconds ago have not.
        granted(limiter)
        denied(limiter)

    def test_all_handles_draw_from_one_budget(
        self, backend: QueueBackend, limiter: RateLimiter
    ) -> None:
        other = backend.open_limiter(provider="openai", limit=THREE_A_MINUTE)
        granted(limiter)
        granted(other)
        granted(limiter)

        denied(other)

    def test_providers_have_budgets_of_their_own(
        self, backend: QueueBackend, limiter: RateLimiter
    ) -> None:
        other = backend.open_limiter(provider="azure", limit=THREE_A_MINUTE)
        for _ in range(3):
            granted(limiter)

        granted(other)

    def test_grant_given_back_can_be_taken_anew(self, limiter: RateLimiter) -> None:
        grants = [granted(limiter) for _ in range(3)]

        limiter.give_back(grants[0])

        granted(limiter)
        denied(limiter)

    def test_grant_given_back_twice_is_returned_once(self, limiter: RateLimiter) -> None:
        grants = [granted(limiter) for _ in range(3)]

        limiter.give_back(grants[0])
        limiter.give_back(grants[0])

        granted(limiter)
        denied(limiter)

    def test_recorded_grant_is_neither_recorded_nor_given_back_again(
        self, backend: QueueBackend
    ) -> None:
        limit = RateLimit(requests=100, interval=MINUTE, tokens=1_000)
        limiter = backend.open_limiter(provider="openai", limit=limit)
        grant = granted(limiter, Spent(requests=1, tokens=500))

        limiter.record_actual(grant, tokens=400)
        limiter.record_actual(grant, tokens=400)
        limiter.give_back(grant)

        left = limiter.allowance()
        assert (left.requests, left.tokens) == (99, 600)

    def test_token_budget_holds_beside_the_requests(self, backend: QueueBackend) -> None:
        limit = RateLimit(requests=100, interval=MINUTE, tokens=1_000)
        limiter = backend.open_limiter(provider="openai", limit=limit)
        grant = granted(limiter, Spent(requests=1, tokens=900))

        denied(limiter, Spent(requests=1, tokens=101))
        limiter.give_back(grant)

        granted(limiter, Spent(requests=1, tokens=1_000))

    @pytest.mark.parametrize(("counted", "left"), [(400, 600), (500, 500), (950, 50), (5_000, 0)])
    def test_tokens_that_the_provider_counts_replace_the_estimate(
        self, backend: QueueBackend, counted: int, left: int
    ) -> None:
        limit = RateLimit(requests=100, interval=MINUTE, tokens=1_000)
        limiter = backend.open_limiter(provider="openai", limit=limit)
        grant = granted(limiter, Spent(requests=1, tokens=500))

        limiter.record_actual(grant, tokens=counted)

        denied(limiter, Spent(requests=1, tokens=left + 1))
        assert max(0, limiter.allowance().tokens or 0) == left

    def test_pause_stops_everybody_until_it_is_over(
        self, backend: QueueBackend, limiter: RateLimiter, clock: FakeClock
    ) -> None:
        other = backend.open_limiter(provider="openai", limit=THREE_A_MINUTE)

        limiter.pause(20 * SECOND)

        assert denied(other).retry_at == clock.now() + 20 * SECOND
        assert other.allowance().back_at == clock.now() + 20 * SECOND
        clock.advance(20 * SECOND)
        granted(other)

    def test_shorter_pause_does_not_shorten_a_longer_one(
        self, limiter: RateLimiter, clock: FakeClock
    ) -> None:
        limiter.pause(20 * SECOND)

        limiter.pause(SECOND)

        assert denied(limiter).retry_at == clock.now() + 20 * SECOND

    def test_allowance_tells_what_is_left_and_when_it_is_back(
        self, limiter: RateLimiter, clock: FakeClock
    ) -> None:
        granted(limiter)
        left = limiter.allowance()
        granted(limiter)
        granted(limiter)
        empty = limiter.allowance()

        assert (left.requests, left.tokens, left.back_at) == (2, None, None)
        assert empty.requests == 0
        assert empty.back_at == denied(limiter).retry_at

    def test_changed_interval_does_not_block_for_ever(
        self, backend: QueueBackend, limiter: RateLimiter, clock: FakeClock
    ) -> None:
        for _ in range(3):
            granted(limiter)
        ten_minutes = RateLimit(requests=3, interval=10 * MINUTE)
        changed = backend.open_limiter(provider="openai", limit=ten_minutes)

        denied(changed)
        clock.advance(11 * MINUTE)

        granted(changed)
