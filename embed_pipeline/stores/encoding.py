"""How every backend writes things down: moments as numbers, shared state as small documents."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from embed_pipeline.domain.breaker import Breaker
from embed_pipeline.domain.health import HealthRecord
from embed_pipeline.domain.job import EmbedJob, FailureRecord, JobStatus
from embed_pipeline.domain.switch import Switch, SwitchState

Document = Mapping[str, Any]

MILLISECOND = timedelta(milliseconds=1)
MICROSECOND = timedelta(microseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999: whatever lies outside was counted in another unit."""

INVALID_TIME = EPOCH
"""An end of validity that cannot be read as a time: the entity is not valid all the same."""

STATUSES = {status.value: status for status in JobStatus}
"""By value; the enum's own look-up costs ten times as much, and is made for every job."""


def to_ms(moment: datetime) -> int:
    return (moment - EPOCH) // MILLISECOND


@lru_cache(maxsize=4_096)  # the jobs of a lease share most of their moments
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


def aware(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def to_us(moment: datetime) -> int:
    """Microseconds: buckets of a short interval are finer than milliseconds."""
    return (moment - EPOCH) // MICROSECOND


def from_us(value: int) -> datetime:
    return EPOCH + value * MICROSECOND


def moment_or_none(value: int | None) -> datetime | None:
    return None if value is None else from_ms(value)


def ms_or_none(moment: datetime | None) -> int | None:
    return None if moment is None else to_ms(moment)


def page_start(job: EmbedJob | None, *, since: datetime | None) -> tuple[int, str]:
    """Time and id where a page of ended jobs begins: behind the job, never before `since`."""
    # No id is empty, so the first page is behind nothing.
    first = (to_ms(since) if since else 0, "")
    if job is None or job.processed_at is None:
        return first
    return max(first, (to_ms(job.processed_at), job.id))


def failure_fields(failure: FailureRecord) -> dict[str, str | None]:
    return {
        "error": failure.message,
        "error_type": failure.error_type,
        "error_category": failure.category.value,
        "error_stack": failure.stack,
    }


def switch_document(switch: Switch) -> dict[str, Any]:
    return {
        "state": switch.state.value,
        "reason": switch.reason,
        "since": ms_or_none(switch.since),
        "generation": switch.generation,
    }


def switch_of(document: Document) -> Switch:
    return Switch(
        state=SwitchState(document["state"]),
        reason=document["reason"],
        since=moment_or_none(document["since"]),
        generation=document["generation"],
    )


def breaker_document(breaker: Breaker) -> dict[str, Any]:
    return {
        "name": breaker.name,
        "generation": breaker.generation,
        "level": breaker.level,
        "until": ms_or_none(breaker.until),
        "reason": breaker.reason,
    }


def breaker_of(document: Document) -> Breaker:
    return Breaker(
        name=document["name"],
        generation=document["generation"],
        level=document["level"],
        until=moment_or_none(document["until"]),
        reason=document["reason"],
    )


def health_document(health: HealthRecord) -> dict[str, Any]:
    return {
        "consecutive_failures": health.consecutive_failures,
        "last_success_at": ms_or_none(health.last_success_at),
        "recent": health.recent,
        "crash_loop": health.crash_loop,
    }


def health_of(document: Document) -> HealthRecord:
    return HealthRecord(
        consecutive_failures=document["consecutive_failures"],
        last_success_at=moment_or_none(document["last_success_at"]),
        recent=tuple(document["recent"]),
        crash_loop=document["crash_loop"],
    )
