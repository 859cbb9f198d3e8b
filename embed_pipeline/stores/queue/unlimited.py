"""The budget of a provider without one, such as the local model."""

from __future__ import annotations

from datetime import timedelta

from embed_pipeline.domain.window import Allowance, Grant, RemainingQuota, Spent
from embed_pipeline.ports.clock import Clock, SystemClock
from embed_pipeline.ports.rate_limiter import RateLimiter

_FOR_EVER = timedelta(days=365)


class Unlimited(RateLimiter):
    """Grants everything; what runs in this process has nobody to share with."""

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()

    @property
    def limit(self) -> None:
        return None

    def take(self, cost: Spent) -> Grant:
        now = self._clock.now()
        return Grant(cost=cost, bucket=now, valid_until=now + _FOR_EVER)

    def give_back(self, grant: Grant) -> None:
        """Nothing was taken from anybody."""

    def record_actual(self, grant: Grant, *, tokens: int) -> None:
        """Nobody counts them."""

    def pause(self, duration: timedelta) -> None:
        """A provider without a budget asks nobody to wait."""

    def apply_provider_limits(self, remaining: RemainingQuota) -> None:
        """There is no budget to lower."""

    def allowance(self) -> Allowance:
        return Allowance()

    def close(self) -> None:
        """Nothing was opened."""
