"""The sliding window on one node of the queue's database: everybody draws from one budget."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from embed_pipeline.domain.window import (
    Allowance,
    Denied,
    Grant,
    RateLimit,
    RemainingQuota,
    Spent,
    Window,
    corrected,
)
from embed_pipeline.ports.rate_limiter import RateLimiter
from embed_pipeline.stores.encoding import from_ms, from_us, to_ms, to_us
from embed_pipeline.stores.neo4j.driver.database import Row
from embed_pipeline.stores.neo4j.queue.backend import QueueDatabase, QueueReading, QueueTransaction
from embed_pipeline.stores.neo4j.queue.cypher import control as cypher


class Neo4jRateLimiter(RateLimiter):
    """One provider's budget. The lock of its node is what serialises the takers."""

    def __init__(self, queue: QueueDatabase, *, provider: str, limit: RateLimit) -> None:
        self._queue = queue
        self._provider = provider
        self._limit = limit

    @property
    def limit(self) -> RateLimit:
        return self._limit

    def take(self, cost: Spent) -> Grant | Denied:
        def work(transaction: QueueTransaction) -> Grant | Denied:
            now, window = self._lock(transaction)
            limit = self._limit
            free_from = window.free_from(limit, cost, now)
            if free_from > now:
                return Denied(retry_at=free_from)
            bucket = limit.bucket_at(now)
            self._spend(transaction, window, cost, bucket, now)
            return Grant(cost=cost, bucket=bucket, valid_until=now + limit.grant_lasts)

        return self._queue.write(work)

    def give_back(self, grant: Grant) -> None:
        self._return(grant.bucket, grant.cost)

    def record_actual(self, grant: Grant, *, tokens: int) -> None:
        self._return(grant.bucket, Spent(tokens=grant.cost.tokens - tokens))

    def _return(self, bucket: datetime, back: Spent) -> None:
        def work(transaction: QueueTransaction) -> None:
            _, window = self._lock(transaction)
            spent = window.buckets.get(bucket)
            if spent is not None:
                # A grant is never returned twice into the negative, whatever a caller repeats.
                left = Spent(
                    max(0, spent.requests - back.requests), max(0, spent.tokens - back.tokens)
                )
                self._save(transaction, {**window.buckets, bucket: left})

        self._queue.write(work)

    def pause(self, duration: timedelta) -> None:
        def work(transaction: QueueTransaction) -> None:
            now, window = self._lock(transaction)
            self._pause(transaction, window, duration, now)

        self._queue.write(work)

    def apply_provider_limits(self, remaining: RemainingQuota) -> None:
        now, window = self._queue.read(self._read)
        if not corrected(window, self._limit, remaining, now).is_needed:
            return

        def work(transaction: QueueTransaction) -> None:
            # Looked at again: another worker may have heard the same.
            now, window = self._lock(transaction)
            correction = corrected(window, self._limit, remaining, now)
            if correction.spent != Spent():
                self._spend(transaction, window, correction.spent, correction.bucket, now)
            if correction.pause is not None:
                self._pause(transaction, window, correction.pause, now)

        self._queue.write(work)

    def allowance(self) -> Allowance:
        now, window = self._queue.read(self._read)
        return window.allowance(self._limit, now)

    def close(self) -> None:
        self._queue.close()

    def _lock(self, transaction: QueueTransaction) -> tuple[datetime, Window]:
        return _window(
            transaction.one(cypher.LOCK_BUDGET, provider=self._provider, now_us=transaction.now_us)
        )

    def _read(self, look: QueueReading) -> tuple[datetime, Window]:
        return _window(look.one(cypher.READ_BUDGET, provider=self._provider, now_us=look.now_us))

    def _spend(
        self,
        transaction: QueueTransaction,
        window: Window,
        cost: Spent,
        bucket: datetime,
        now: datetime,
    ) -> None:
        oldest = self._limit.oldest_counting(now)
        counting = {start: spent for start, spent in window.buckets.items() if start >= oldest}
        counting[bucket] = counting.get(bucket, Spent()).plus(cost)
        self._save(transaction, counting)

    def _pause(
        self, transaction: QueueTransaction, window: Window, duration: timedelta, now: datetime
    ) -> None:
        until = to_ms(now + duration)
        if window.paused_until is None or to_ms(window.paused_until) < until:
            transaction.all(cypher.WRITE_PAUSE, provider=self._provider, paused_until=until)
            transaction.record("limiter.paused", provider=self._provider, until=until)
            transaction.announce("limiter.paused", provider=self._provider, until=now + duration)

    def _save(self, transaction: QueueTransaction, buckets: Mapping[datetime, Spent]) -> None:
        transaction.all(
            cypher.WRITE_BUCKETS,
            provider=self._provider,
            buckets=[to_us(start) for start in buckets],
            requests=[spent.requests for spent in buckets.values()],
            tokens=[spent.tokens for spent in buckets.values()],
        )


def _window(row: Row) -> tuple[datetime, Window]:
    """The time behind the lock, and what was granted: three lists side by side."""
    budget = row["budget"] or {}
    granted = zip(
        budget.get("buckets", ()), budget.get("requests", ()), budget.get("tokens", ()), strict=True
    )
    paused_until = budget.get("paused_until")
    window = Window(
        buckets={from_us(start): Spent(n, tokens) for start, n, tokens in granted},
        paused_until=None if paused_until is None else from_ms(paused_until),
    )
    return from_us(row["now"]), window
