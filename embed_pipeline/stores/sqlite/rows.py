"""Between rows and values: the only place that knows how things are written down."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable

from embed_pipeline.errors import ErrorCategory
from embed_pipeline.model.event import Event
from embed_pipeline.model.job import (
    Again,
    EmbedJob,
    EntityUid,
    JobId,
    JobStatus,
)
from embed_pipeline.stores.notation import from_ms, moment_or_none


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
        processed_at=moment_or_none(row["processed_at"]),
        lock_owner=row["lock_owner"],
        lock_until=moment_or_none(row["lock_until"]),
        lease_token=row["lease_token"],
        last_heartbeat_at=moment_or_none(row["last_heartbeat_at"]),
        attempts=row["attempts"],
        max_attempts=row["max_attempts"],
        recoveries=row["recoveries"],
        recovered_at=moment_or_none(row["recovered_at"]),
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


def event_of(row: sqlite3.Row) -> Event:
    return Event(
        at=from_ms(row["at"]),
        kind=row["kind"],
        owner=row["owner"],
        reason=row["reason"],
        job_ids=tuple(JobId(job_id) for job_id in json.loads(row["job_ids"])),
        facts=json.loads(row["facts"]),
    )
