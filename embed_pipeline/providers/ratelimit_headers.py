"""What a provider says is left of its limits: the `x-ratelimit-*` headers of its answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from embed_pipeline.domain.window import RemainingQuota
from embed_pipeline.providers.retry_after import LONGEST

_NUMBER = r"([0-9]{1,12}(?:\.[0-9]{1,12})?)"
_UNITS = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds", "ms": "milliseconds"}
_DURATION = re.compile("".join(f"(?:{_NUMBER}{unit})?" for unit in _UNITS))
_DAY = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limit:
    remaining: int
    reset: timedelta | None


def remaining(headers: Mapping[str, str]) -> RemainingQuota | None:
    """None where nothing is said that can be relied on."""
    requests, tokens = _limit(headers, "requests"), _limit(headers, "tokens")
    if requests is None and tokens is None:
        return None
    return RemainingQuota(
        requests=None if requests is None else requests.remaining,
        tokens=None if tokens is None else tokens.remaining,
        back_in=_back_in([requests, tokens]),
    )


def reset_after(headers: Mapping[str, str]) -> timedelta | None:
    """When there is room again, of an answer that refuses for lack of it."""
    return _back_in([_limit(headers, "requests"), _limit(headers, "tokens")])


def _limit(headers: Mapping[str, str], kind: str) -> _Limit | None:
    """None also for a limit of zero: Azure sends zeros that mean nothing."""
    limit = _whole(headers.get(f"x-ratelimit-limit-{kind}"))
    remaining = _whole(headers.get(f"x-ratelimit-remaining-{kind}"))
    if not limit or remaining is None:
        return None
    return _Limit(
        remaining=remaining, reset=_duration(headers.get(f"x-ratelimit-reset-{kind}", ""))
    )


def _back_in(limits: Iterable[_Limit | None]) -> timedelta | None:
    """Until what is used up is back; until all is, where nothing is used up."""
    told = [limit for limit in limits if limit is not None]
    used_up = [limit for limit in told if limit.remaining == 0]
    resets = [limit.reset for limit in used_up or told if limit.reset is not None]
    return min(max(resets), LONGEST) if resets else None


def _whole(value: str | None) -> int | None:
    return int(value) if value and re.fullmatch("[0-9]{1,15}", value) else None


def _duration(value: str) -> timedelta | None:
    """Of "6m0s", "20ms" or plain seconds; a number that can only be a date says nothing."""
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
