"""The budget of one provider: a sliding window in the queue's database, for all workers at once."""

from __future__ import annotations

import secrets
from dataclasses import replace
from datetime import datetime, timedelta

from embed_pipeline.domain.window import (
    Allowance,
    Correction,
    Denied,
    Grant,
    RateLimit,
    RemainingQuota,
    Spent,
    Window,
    corrected,
)
from embed_pipeline.ports.clock import Clock, SystemClock
from embed_pipeline.ports.rate_limiter import RateLimiter
from embed_pipeline.stores.encoding import to_ms
from embed_pipeline.stores.queue.documents import budget_of
from embed_pipeline.stores.queue.transaction import QueueDatabase, Reading, Transaction


class SharedRateLimiter(RateLimiter):
    """The lock of the budget's document serialises the takers."""

    def __init__(self, database: QueueDatabase, *, provider: str, limit: RateLimit) -> None:
        self._database = database
        self._provider = provider
        self._limit = limit
        self._budget = budget_of(provider)

    @property
    def limit(self) -> RateLimit:
        return self._limit

    def take(self, cost: Spent) -> Grant | Denied:
        grant_id = _new_id()

        def work(transaction: Transaction) -> Grant | Denied:
            window = self._budget.lock(transaction)
            if bucket := window.bucket_of(grant_id):
                return Grant(id=grant_id, cost=cost, bucket=bucket)
            now, limit = transaction.now, self._limit
            free_from = window.free_from(limit, cost, now)
            if free_from > now:
                return Denied(retry_at=free_from)
            grant = Grant(id=grant_id, cost=cost, bucket=limit.bucket_at(now))
            self._budget.save(transaction, window.with_grant(grant, limit, now))
            return grant

        return self._database.write(work)

    def give_back(self, grant: Grant) -> None:
        self._return(grant, grant.cost)

    def record_actual(self, grant: Grant, *, tokens: int) -> None:
        self._return(grant, Spent(tokens=grant.cost.tokens - tokens))

    def _return(self, grant: Grant, back: Spent) -> None:
        def work(transaction: Transaction) -> None:
            before = self._budget.lock(transaction)
            after = before.without_grant(grant, back=back)
            if after is not before:
                self._budget.save(transaction, after)

        self._database.write(work)

    def pause(self, duration: timedelta) -> None:
        def work(transaction: Transaction) -> None:
            window = self._budget.lock(transaction)
            self._pause(transaction, window, duration)

        self._database.write(work)

    def apply_provider_limits(self, remaining: RemainingQuota) -> None:
        def read(reading: Reading) -> Correction:
            return self._correction(self._budget.read(reading), remaining, reading.now)

        def work(transaction: Transaction) -> None:
            # Decided again: another worker may have got the same answer.
            window = self._budget.lock(transaction)
            now = transaction.now
            correction = self._correction(window, remaining, now)
            if correction.spent != Spent():
                spent, bucket = correction.spent, correction.bucket
                window = window.with_spent(bucket, spent, self._limit, now)
                self._budget.save(transaction, window)
            if correction.pause is not None:
                self._pause(transaction, window, correction.pause)

        if self._database.read(read).is_needed:
            self._database.write(work)

    def allowance(self) -> Allowance:
        def read(reading: Reading) -> Allowance:
            return self._budget.read(reading).allowance(self._limit, reading.now)

        return self._database.read(read)

    def close(self) -> None:
        self._database.close()

    def _pause(self, transaction: Transaction, window: Window, duration: timedelta) -> None:
        until = transaction.now + duration
        if window.paused_until is None or window.paused_until < until:
            self._budget.save(transaction, replace(window, paused_until=until))
            transaction.record("limiter.paused", provider=self._provider, until=to_ms(until))
            transaction.announce("limiter.paused", provider=self._provider, until=until)

    def _correction(self, window: Window, remaining: RemainingQuota, now: datetime) -> Correction:
        return corrected(window, self._limit, remaining, now)


class Unlimited(RateLimiter):
    """Grants everything: for a provider without a budget, such as the local model."""

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()

    @property
    def limit(self) -> None:
        return None

    def take(self, cost: Spent) -> Grant:
        return Grant(id=_new_id(), cost=cost, bucket=self._clock.now())

    def give_back(self, grant: Grant) -> None:
        """Nothing was taken."""

    def record_actual(self, grant: Grant, *, tokens: int) -> None:
        """Nothing is counted."""

    def pause(self, duration: timedelta) -> None:
        """A provider in this process never asks to wait."""

    def apply_provider_limits(self, remaining: RemainingQuota) -> None:
        """There is no budget to lower."""

    def allowance(self) -> Allowance:
        return Allowance()

    def close(self) -> None:
        """Nothing was opened."""


def _new_id() -> str:
    return secrets.token_hex(6)
