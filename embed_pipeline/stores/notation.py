"""How every backend writes things down: moments as numbers, shared state as small documents."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from embed_pipeline.model.breaker import Breaker
from embed_pipeline.model.health import HealthRecord
from embed_pipeline.model.job import FailureRecord
from embed_pipeline.model.switch import Switch, SwitchState

Document = Mapping[str, Any]

MILLISECOND = timedelta(milliseconds=1)
MICROSECOND = timedelta(microseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_ms(moment: datetime) -> int:
    return (moment - EPOCH) // MILLISECOND


def from_ms(value: int) -> datetime:
    return EPOCH + value * MILLISECOND


def to_us(moment: datetime) -> int:
    """Microseconds: buckets of a short interval are finer than milliseconds."""
    return (moment - EPOCH) // MICROSECOND


def from_us(value: int) -> datetime:
    return EPOCH + value * MICROSECOND


def moment_or_none(value: int | None) -> datetime | None:
    return None if value is None else from_ms(value)


def ms_or_none(moment: datetime | None) -> int | None:
    return None if moment is None else to_ms(moment)


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
