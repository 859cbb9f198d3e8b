"""The sliding window that no arrangement of workers can overdraw, measured at the provider.

A request arrives after its grant, so a grant counts for longer than the interval. The counted
window is cut into 60 sub-buckets; a grant counts as long as any part of its bucket does. A token
bucket admits nearly 2N (a full bucket, then the refill), which a provider answers with 429.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import reduce

SUB_BUCKETS = 60
ALLOWANCE = timedelta(seconds=1)
SHORTEST_GRANT = timedelta(milliseconds=250)
"""A busy machine and a database far away need that much between a grant and its request."""

OPEN_BUCKETS = 5
"""Where only requests are limited, how many of the newest buckets know their grants: a grant that
was not sent is returned soon, and nothing is recorded later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """At most `requests` (and `tokens`, where set) arrive in any window of `interval`."""

    requests: int
    interval: timedelta
    tokens: int | None = None
    allowance: timedelta = ALLOWANCE
    """How long a request may take from here to the provider, connecting included."""

    @property
    def grant_lasts(self) -> timedelta:
        """How long a grant may wait to be sent. A short interval alone would leave too little."""
        return max(self.interval / SUB_BUCKETS, SHORTEST_GRANT)

    @property
    def counted(self) -> timedelta:
        """The window in which grants are counted, so that any interval at the provider holds."""
        return self.interval + self.grant_lasts + self.allowance

    @property
    def sub_bucket(self) -> timedelta:
        """Rounded up: sixty of them are never shorter than what is counted."""
        return timedelta(microseconds=-(-(self.counted // MICROSECOND) // SUB_BUCKETS))

    def bucket_at(self, now: datetime) -> datetime:
        """The start of the bucket that `now` lies in."""
        return EPOCH + (now - EPOCH) // self.sub_bucket * self.sub_bucket

    def oldest_counting(self, now: datetime) -> datetime:
        """The oldest bucket that overlaps the window ending now."""
        return self.bucket_at(now) - SUB_BUCKETS * self.sub_bucket

    def stops_counting(self, bucket: datetime) -> datetime:
        return bucket + (SUB_BUCKETS + 1) * self.sub_bucket

    def bucket_until(self, end: datetime, now: datetime) -> datetime:
        """The bucket that counts until `end` or a little longer; never a future one."""
        bucket = self.bucket_at(end) - SUB_BUCKETS * self.sub_bucket
        return min(max(bucket, self.oldest_counting(now)), self.bucket_at(now))


MICROSECOND = timedelta(microseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Spent:
    requests: int = 0
    tokens: int = 0

    def plus(self, other: Spent) -> Spent:
        return Spent(self.requests + other.requests, self.tokens + other.tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What was granted, by the bucket's start, and until when the provider asked for a pause.

    Buckets are known by their start and not by a number: another interval after a change of
    settings then still reads them right. `grants` are the ids of those that may still be returned,
    by bucket, so that a call repeated after a lost answer counts once.
    """

    buckets: Mapping[datetime, Spent] = field(default_factory=dict)
    grants: Mapping[datetime, Sequence[str]] = field(default_factory=dict)
    paused_until: datetime | None = None

    def with_grant(self, grant: Grant, limit: RateLimit, now: datetime) -> Window:
        spent = self.with_spent(grant.bucket, grant.cost, limit, now)
        others = self.grants.get(grant.bucket, ())
        return replace(spent, grants={**spent.grants, grant.bucket: [*others, grant.id]})

    def with_spent(self, bucket: datetime, cost: Spent, limit: RateLimit, now: datetime) -> Window:
        """More in this bucket, and without what no longer counts."""
        oldest = limit.oldest_counting(now)
        counting = {at: spent for at, spent in self.buckets.items() if at >= oldest}
        counting[bucket] = counting.get(bucket, Spent()).plus(cost)
        if limit.tokens is None:
            oldest = limit.bucket_at(now) - OPEN_BUCKETS * limit.sub_bucket
        grants = {at: ids for at, ids in self.grants.items() if at >= oldest}
        return replace(self, buckets=counting, grants=grants)

    def bucket_of(self, grant_id: str) -> datetime | None:
        """None when the grant is unknown, returned or recorded."""
        return next((at for at, ids in self.grants.items() if grant_id in ids), None)

    def without_grant(self, grant: Grant, *, back: Spent) -> Window:
        """With `back` returned; unchanged when the grant was returned or recorded before."""
        ids = self.grants.get(grant.bucket, ())
        if grant.id not in ids or grant.bucket not in self.buckets:
            return self
        spent = self.buckets[grant.bucket]
        left = Spent(max(0, spent.requests - back.requests), max(0, spent.tokens - back.tokens))
        others = [id_ for id_ in ids if id_ != grant.id]
        return replace(
            self,
            buckets={**self.buckets, grant.bucket: left},
            grants={**self.grants, grant.bucket: others},
        )

    def spent(self, limit: RateLimit, now: datetime) -> Spent:
        oldest = limit.oldest_counting(now)
        counting = [spent for bucket, spent in self.buckets.items() if bucket >= oldest]
        return reduce(Spent.plus, counting, Spent())

    def free_from(self, limit: RateLimit, cost: Spent, now: datetime) -> datetime:
        """The first time at which `cost` fits, if no other worker spends; `now` when it fits now.

        A cost over the whole limit never fits: callers refuse it before they ask.
        """
        earliest = max(now, self.paused_until or now)
        spent = self.spent(limit, now)
        for bucket in sorted(b for b in self.buckets if b >= limit.oldest_counting(now)):
            if fits(limit, spent, cost):
                break
            given = self.buckets[bucket]
            spent = Spent(spent.requests - given.requests, spent.tokens - given.tokens)
            earliest = max(earliest, limit.stops_counting(bucket))
        return earliest

    def left(self, limit: RateLimit, now: datetime) -> Allowance:
        """What the buckets leave, paused or not."""
        spent = self.spent(limit, now)
        return Allowance(
            requests=limit.requests - spent.requests,
            tokens=None if limit.tokens is None else limit.tokens - spent.tokens,
        )

    def allowance(self, limit: RateLimit, now: datetime) -> Allowance:
        one = Spent(requests=1, tokens=1 if limit.tokens is not None else 0)
        back_at = self.free_from(limit, one, now)
        if back_at > now:
            return Allowance(requests=0, tokens=0, back_at=back_at)
        return self.left(limit, now)


def fits(limit: RateLimit, spent: Spent, cost: Spent) -> bool:
    if spent.requests + cost.requests > limit.requests:
        return False
    return limit.tokens is None or spent.tokens + cost.tokens <= limit.tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """The right to send `cost` within `RateLimit.grant_lasts`; later it must be given back.

    The id is made before the database is asked, so that a call can be repeated.
    """

    id: str
    cost: Spent
    bucket: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Denied:
    """No room now; it may fit at `retry_at`."""

    retry_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What is left in the window now; None means without limit."""

    requests: int | None = None
    tokens: int | None = None
    back_at: datetime | None = None
    """When there is room again; None while there is some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemainingQuota:
    """What a provider says is left of its own limits now; None where it does not say."""

    requests: int | None = None
    tokens: int | None = None
    back_in: timedelta | None = None
    """How long until what is used up is back, or all of it where nothing is used up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """What the budget takes over from a provider that has less left than we believe."""

    spent: Spent = Spent()
    bucket: datetime
    pause: timedelta | None = None

    @property
    def is_needed(self) -> bool:
        return self.spent != Spent() or self.pause is not None


def corrected(
    window: Window, limit: RateLimit, remaining: RemainingQuota, now: datetime
) -> Correction:
    """Never adds budget. What others have spent counts for as long as the provider says."""
    left = window.left(limit, now)
    back_at = None if remaining.back_in is None else now + remaining.back_in
    if back_at is None:
        return Correction(spent=overestimate(left, remaining), bucket=limit.bucket_at(now))
    if _unexpectedly_empty(left, remaining):
        known = window.paused_until is not None and back_at <= window.paused_until
        return Correction(pause=None if known else remaining.back_in, bucket=limit.bucket_at(now))
    return Correction(spent=overestimate(left, remaining), bucket=limit.bucket_until(back_at, now))


def _unexpectedly_empty(left: Allowance, remaining: RemainingQuota) -> bool:
    """Where our own window is empty too it knows best when there is room again."""
    pairs = ((left.requests, remaining.requests), (left.tokens, remaining.tokens))
    return any(theirs == 0 and (ours is None or ours > 0) for ours, theirs in pairs)


def overestimate(left: Allowance, remaining: RemainingQuota) -> Spent:
    """What we believe to have left and the provider does not: others have spent it."""
    return Spent(
        requests=_more_than(left.requests, remaining.requests),
        tokens=_more_than(left.tokens, remaining.tokens),
    )


def _more_than(ours: int | None, theirs: int | None) -> int:
    return 0 if ours is None or theirs is None else max(0, ours - theirs)
