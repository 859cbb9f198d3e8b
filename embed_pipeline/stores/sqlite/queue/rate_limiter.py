"""The sliding window in the queue's file, so that all processes draw from one budget."""

from __future__ import annotations

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
from embed_pipeline.ports.rate_limiter import RateLimiter
from embed_pipeline.stores.encoding import from_ms, from_us, to_us
from embed_pipeline.stores.sqlite.queue import control_sql as sql
from embed_pipeline.stores.sqlite.queue.backend import QueueFile, QueueTransaction


class SqliteRateLimiter(RateLimiter):
    """One provider's budget. The transaction's lock is what serialises the takers."""

    def __init__(self, queue: QueueFile, *, provider: str, limit: RateLimit) -> None:
        self._queue = queue
        self._provider = provider
        self._limit = limit
        self._pause_state = f"pause:{provider}"

    @property
    def limit(self) -> RateLimit:
        return self._limit

    def take(self, cost: Spent) -> Grant | Denied:
        with self._queue.transaction() as transaction:
            now, limit = transaction.now, self._limit
            free_from = self._window(transaction).free_from(limit, cost, now)
            if free_from > now:
                return Denied(retry_at=free_from)
            bucket = limit.bucket_at(now)
            transaction.run(sql.SPEND_IN_BUCKET, **self._in_bucket(bucket, cost))
            transaction.run(
                sql.FORGET_BUCKETS,
                provider=self._provider,
                oldest=to_us(limit.oldest_counting(now)),
            )
            return Grant(cost=cost, bucket=bucket, valid_until=now + limit.grant_lasts)

    def give_back(self, grant: Grant) -> None:
        self._return(grant.bucket, grant.cost)

    def record_actual(self, grant: Grant, *, tokens: int) -> None:
        self._return(grant.bucket, Spent(tokens=grant.cost.tokens - tokens))

    def _return(self, bucket: datetime, back: Spent) -> None:
        with self._queue.transaction() as transaction:
            transaction.run(sql.RETURN_TO_BUCKET, **self._in_bucket(bucket, back))

    def pause(self, duration: timedelta) -> None:
        with self._queue.transaction() as transaction:
            self._pause(transaction, duration)

    def apply_provider_limits(self, remaining: RemainingQuota) -> None:
        with self._queue.reading() as look:
            if not self._correction(look, remaining).is_needed:
                return
        with self._queue.transaction() as transaction:
            # Looked at again: another worker may have heard the same.
            correction = self._correction(transaction, remaining)
            if correction.spent != Spent():
                spent = self._in_bucket(correction.bucket, correction.spent)
                transaction.run(sql.SPEND_IN_BUCKET, **spent)
            if correction.pause is not None:
                self._pause(transaction, correction.pause)

    def allowance(self) -> Allowance:
        with self._queue.reading() as look:
            return self._window(look).allowance(self._limit, look.now)

    def close(self) -> None:
        self._queue.close()

    def _pause(self, transaction: QueueTransaction, duration: timedelta) -> None:
        until = transaction.in_ms(duration)
        earlier = transaction.state(self._pause_state)
        if earlier is None or earlier["until"] < until:
            transaction.set_state(self._pause_state, {"until": until})
            transaction.record("limiter.paused", provider=self._provider, until=until)
            transaction.announce(
                "limiter.paused", provider=self._provider, until=transaction.now + duration
            )

    def _correction(self, look: QueueTransaction, remaining: RemainingQuota) -> Correction:
        return corrected(self._window(look), self._limit, remaining, look.now)

    def _window(self, look: QueueTransaction) -> Window:
        oldest = to_us(self._limit.oldest_counting(look.now))
        found = look.all(sql.READ_BUCKETS, provider=self._provider, oldest=oldest)
        pause = look.state(self._pause_state)
        return Window(
            buckets={
                from_us(row["bucket"]): Spent(row["requests"], row["tokens"]) for row in found
            },
            paused_until=from_ms(pause["until"]) if pause else None,
        )

    def _in_bucket(self, bucket: datetime, cost: Spent) -> dict[str, object]:
        return {
            "provider": self._provider,
            "bucket": to_us(bucket),
            "requests": cost.requests,
            "tokens": cost.tokens,
        }
