"""How every backend writes things down: times as numbers, errors as fields."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import lru_cache
from typing import Any

from embed_pipeline.domain.job import EmbedJob, FailureRecord, JobStatus
from embed_pipeline.domain.transition import JobChanges

MILLISECOND = timedelta(milliseconds=1)
MICROSECOND = timedelta(microseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999: whatever lies outside was counted in another unit."""

INVALID_TIME = EPOCH
"""An end of validity that cannot be read as a time: the entity is not valid all the same."""

Document = dict[str, Any]
"""A small JSON object that all workers share."""

JOB_FIELDS = tuple(field.name for field in fields(EmbedJob))
JOB_TIMES = tuple(field.name for field in fields(EmbedJob) if "datetime" in str(field.type))

STATUSES = {status.value: status for status in JobStatus}
"""By value; the enum's own lookup costs ten times as much, and is made for every job."""


def to_ms(time: datetime) -> int:
    return (time - EPOCH) // MILLISECOND


@lru_cache(maxsize=4_096)  # the jobs of a lease share most of their times
def from_ms(value: int) -> datetime:
    return EPOCH + value * MILLISECOND


def read_moment(value: object) -> datetime | None:
    """What another program wrote: milliseconds since 1970, or a string; None if it is no time."""
    try:
        match value:
            case bool():
                return None
            case int() | float():
                return EPOCH + timedelta(milliseconds=value)
            case str():
                return aware(datetime.fromisoformat(value))
    except (ValueError, OverflowError):
        pass
    return None


def aware(time: datetime) -> datetime:
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


@lru_cache(maxsize=4_096)
def to_us(time: datetime) -> int:
    """Microseconds: buckets of a short interval are finer than milliseconds."""
    return (time - EPOCH) // MICROSECOND


@lru_cache(maxsize=4_096)
def from_us(value: int) -> datetime:
    return EPOCH + value * MICROSECOND


def time_or_none(value: int | None) -> datetime | None:
    return None if value is None else from_ms(value)


def failure_fields(failure: FailureRecord) -> dict[str, str | None]:
    return {
        "error": failure.message,
        "error_type": failure.error_type,
        "error_category": failure.category.value,
        "error_stack": failure.stack,
    }


def plain_fields(changes: JobChanges) -> dict[str, Any]:
    """As they are stored: times in milliseconds, enums by their value."""
    return {name: plain(value) for name, value in changes.items()}


def plain(value: object) -> object:
    """A time in milliseconds, an enum by its value, anything else as it is."""
    if isinstance(value, datetime):
        return to_ms(value)
    return value.value if isinstance(value, Enum) else value
