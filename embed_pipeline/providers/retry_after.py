"""How long a provider asks to wait, read from the headers of its answer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

LONGEST = timedelta(hours=1)
"""A longer wait is taken for a mistake: it would stop everybody until a person looks."""


def retry_after(headers: Mapping[str, str]) -> timedelta | None:
    """Between zero and an hour; None when nothing readable was said."""
    seconds = _seconds(headers)
    if seconds is None:
        return None
    return timedelta(seconds=min(max(seconds, 0.0), LONGEST.total_seconds()))


def _seconds(headers: Mapping[str, str]) -> float | None:
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    said = headers.get("retry-after")
    seconds = _number(said)
    return seconds if seconds is not None else _until(said, since=headers.get("date"))


def _number(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return None if math.isnan(number) else number


def _until(value: str | None, *, since: str | None) -> float | None:
    """From the answer's own `Date`, so that our clock does not matter."""
    moment, answered = _date(value), _date(since)
    return (moment - answered).total_seconds() if moment and answered else None


def _date(value: str | None) -> datetime | None:
    try:
        moment = parsedate_to_datetime(value or "")
    except (TypeError, ValueError):
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
