"""The headers of an answer: how long to wait, and what is left of the provider's limits."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from embed_pipeline.domain.window import RemainingQuota

LONGEST = timedelta(hours=1)
"""A longer wait is taken for a mistake: it would stop all workers until a person intervenes."""

_NUMBER = r"([0-9]{1,12}(?:\.[0-9]{1,12})?)"
_UNITS = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds", "ms": "milliseconds"}
_DURATION = re.compile("".join(f"(?:{_NUMBER}{unit})?" for unit in _UNITS))
_DAY = 86_400


def retry_after(headers: Mapping[str, str]) -> timedelta | None:
    """From zero to an hour; None when the headers do not say."""
    seconds = _seconds(headers)
    if seconds is None:
        return None
    return timedelta(seconds=min(max(seconds, 0.0), LONGEST.total_seconds()))


def _seconds(headers: Mapping[str, str]) -> float | None:
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _number(value)
    return seconds if seconds is not None else _until(value, since=headers.get("date"))


def _number(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return None if math.isnan(number) else number


def _until(value: str | None, *, since: str | None) -> float | None:
    """Measured from the answer's own `Date`, so that our clock does not matter."""
    end, answered = _date(value), _date(since)
    return (end - answered).total_seconds() if end and answered else None


def _date(value: str | None) -> datetime | None:
    try:
        date = parsedate_to_datetime(value or "")
    except (TypeError, ValueError):
        return None
    return date.replace(tzinfo=UTC) if date.tzinfo is None else date


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limit:
    remaining: int
    reset: timedelta | None


def remaining(headers: Mapping[str, str]) -> RemainingQuota | None:
    """The `x-ratelimit-*` headers; None where they say nothing reliable."""
    requests, tokens = _limit(headers, "requests"), _limit(headers, "tokens")
    if requests is None and tokens is None:
        return None
    return RemainingQuota(
        requests=None if requests is None else requests.remaining,
        tokens=None if tokens is None else tokens.remaining,
        back_in=_back_in([requests, tokens]),
    )


def reset_after(headers: Mapping[str, str]) -> timedelta | None:
    """When there is room again, according to an answer that refused for lack of it."""
    return _back_in([_limit(headers, "requests"), _limit(headers, "tokens")])


def _limit(headers: Mapping[str, str], kind: str) -> _Limit | None:
    """None also for a limit of zero: Azure sends meaningless zeros."""
    limit = _whole(headers.get(f"x-ratelimit-limit-{kind}"))
    remaining = _whole(headers.get(f"x-ratelimit-remaining-{kind}"))
    if not limit or remaining is None:
        return None
    return _Limit(
        remaining=remaining, reset=_duration(headers.get(f"x-ratelimit-reset-{kind}", ""))
    )


def _back_in(limits: Iterable[_Limit | None]) -> timedelta | None:
    """Until the used-up limits are back; until all are, where none is used up."""
    known = [limit for limit in limits if limit is not None]
    used_up = [limit for limit in known if limit.remaining == 0]
    resets = [limit.reset for limit in used_up or known if limit.reset is not None]
    return min(max(resets), LONGEST) if resets else None


def _whole(value: str | None) -> int | None:
    return int(value) if value and re.fullmatch("[0-9]{1,15}", value) else None


def _duration(value: str) -> timedelta | None:
    """Of "6m0s", "20ms" or plain seconds; None for a number so large that it must be a date."""
    if re.fullmatch(_NUMBER, value):
        seconds = float(value)
        return timedelta(seconds=seconds) if seconds <= _DAY else None
    found = _DURATION.fullmatch(value)
    if found is None or not value:
        return None
    amounts = zip(_UNITS.values(), found.groups(), strict=True)
    try:
        return timedelta(**{unit: float(amount) for unit, amount in amounts if amount})
    except OverflowError:
        return LONGEST
