"""Between rows and values: the only place that knows how things are written down."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from embed_pipeline.errors import ErrorCategory
from embed_pipeline.model.breaker import Breaker
from embed_pipeline.model.event import Event
from embed_pipeline.model.health import HealthRecord
from embed_pipeline.model.job import (
    Again,
    EmbedJob,
    EntityUid,
    FailureRecord,
    JobId,
    JobStatus,
)
from embed_pipeline.model.switch import Switch, SwitchState

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


def _moment(value: int | None) -> datetime | None:
    return None if value is None else from_ms(value)


def _ms(moment: datetime | None) -> int | None:
    return None if moment is None else to_ms(moment)


def as_list(values: Iterable[object]) -> str:
    """A list parameter, for `json_each`."""
    return json.dumps(list(values), separators=(",", ":"))


def job_of(row: sqlite3.Row) -> EmbedJob:
    return EmbedJob(
        id=JobId(row["id"]),
        entity_uid=EntityUid(row["entity_uid"]),
        model=row["model"],
        version=row["version"],
        status=JobStatus(row["status"]),
        priority=row["priority"],
        created_at=from_ms(row["created_at"]),
        available_at=from_ms(row["available_at"]),
        processed_at=_moment(row["processed_at"]),
        lock_owner=row["lock_owner"],
        lock_until=_moment(row["lock_until"]),
        lease_token=row["lease_token"],
        last_heartbeat_at=_moment(row["last_heartbeat_at"]),
        attempts=row["attempts"],
        max_attempts=row["max_attempts"],
        recoveries=row["recoveries"],
        recovered_at=_moment(row["recovered_at"]),
        strikes=row["strikes"],
        force=bool(row["force"]),
        again=Again(row["again"]),
        error=row["error"],
        error_type=row["error_type"],
        error_category=ErrorCategory(row["error_category"]) if row["error_category"] else None,
        error_stack=row["error_stack"],
        fail_code=row["fail_code"],
        fail_reason=row["fail_reason"],
    )


def failure_columns(failure: FailureRecord) -> dict[str, str | None]:
    return {
        "error": failure.message,
        "error_type": failure.error_type,
        "error_category": failure.category.value,
        "error_stack": failure.stack,
    }


def event_of(row: sqlite3.Row) -> Event:
    return Event(
        at=from_ms(row["at"]),
        kind=row["kind"],
        owner=row["owner"],
        reason=row["reason"],
        job_ids=tuple(JobId(job_id) for job_id in json.loads(row["job_ids"])),
        facts=json.loads(row["facts"]),
    )


def switch_document(switch: Switch) -> dict[str, Any]:
    return {
        "state": switch.state.value,
        "reason": switch.reason,
        "since": _ms(switch.since),
        "generation": switch.generation,
    }


def switch_of(document: dict[str, Any]) -> Switch:
    return Switch(
        state=SwitchState(document["state"]),
        reason=document["reason"],
        since=_moment(document["since"]),
        generation=document["generation"],
    )


def breaker_document(breaker: Breaker) -> dict[str, Any]:
    return {
        "name": breaker.name,
        "generation": breaker.generation,
        "level": breaker.level,
        "until": _ms(breaker.until),
        "reason": breaker.reason,
    }


def breaker_of(document: dict[str, Any]) -> Breaker:
    return Breaker(
        name=document["name"],
        generation=document["generation"],
        level=document["level"],
        until=_moment(document["until"]),
        reason=document["reason"],
    )


def health_document(health: HealthRecord) -> dict[str, Any]:
    return {
        "consecutive_failures": health.consecutive_failures,
        "last_success_at": _ms(health.last_success_at),
        "recent": health.recent,
        "crash_loop": health.crash_loop,
    }


def health_of(document: dict[str, Any]) -> HealthRecord:
    return HealthRecord(
        consecutive_failures=document["consecutive_failures"],
        last_success_at=_moment(document["last_success_at"]),
        recent=tuple(document["recent"]),
        crash_loop=document["crash_loop"],
    )
