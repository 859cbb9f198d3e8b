"""Between rows and values: the only place that knows how things are written down."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

from embed_pipeline.domain.admission import KnownJob
from embed_pipeline.domain.event import Event
from embed_pipeline.domain.job import Again, EmbedJob, JobId
from embed_pipeline.errors import ErrorCategory
from embed_pipeline.stores.encoding import STATUSES, from_ms, time_or_none

_encode = json.JSONEncoder(separators=(",", ":")).encode


def as_list(values: Iterable[object]) -> str:
    """A list parameter, for `json_each`."""
    return _encode(list(values))


# In the order in which `_job` takes them.
_COLUMNS = (
    *("id", "entity_uid", "model", "version", "status", "priority", "created_at", "available_at"),
    *("processed_at", "lock_owner", "lock_until", "lease_token", "last_heartbeat_at"),
    *("attempts", "max_attempts", "recoveries", "recovered_at", "strikes", "force", "again"),
    *("error", "error_type", "error_category", "error_stack", "fail_code", "fail_reason"),
)


def jobs_of(found: Sequence[sqlite3.Row]) -> list[EmbedJob]:
    """Rows of one statement. A row looks its columns up one by one, so they are placed once."""
    if not found:
        return []
    values_of = _values_of(tuple(found[0].keys()))
    return [_job(values_of(row)) for row in found]


@lru_cache
def _values_of(names: tuple[str, ...]) -> Callable[[sqlite3.Row], tuple[Any, ...]]:
    return itemgetter(*(names.index(column) for column in _COLUMNS))


def _job(values: tuple[Any, ...]) -> EmbedJob:
    job_id, uid, model, version, status, priority, created_at, available_at, *rest = values
    processed_at, owner, until, token, last_heartbeat_at, *rest = rest
    attempts, max_attempts, recoveries, recovered_at, strikes, force, again, *rest = rest
    error, error_type, category, stack, fail_code, fail_reason = rest
    return EmbedJob(
        id=job_id,
        entity_uid=uid,
        model=model,
        version=version,
        status=STATUSES[status],
        priority=priority,
        created_at=from_ms(created_at),
        available_at=from_ms(available_at),
        processed_at=time_or_none(processed_at),
        lock_owner=owner,
        lock_until=time_or_none(until),
        lease_token=token,
        last_heartbeat_at=time_or_none(last_heartbeat_at),
        attempts=attempts,
        max_attempts=max_attempts,
        recoveries=recoveries,
        recovered_at=time_or_none(recovered_at),
        strikes=strikes,
        force=bool(force),
        again=Again(again) if again else Again.NO,
        error=error,
        error_type=error_type,
        error_category=ErrorCategory(category) if category else None,
        error_stack=stack,
        fail_code=fail_code,
        fail_reason=fail_reason,
    )


def known_job_of(row: sqlite3.Row) -> KnownJob:
    _, _, _, job_id, status, fail_code, priority, available_at, again = row
    return KnownJob(
        job_id, STATUSES[status], fail_code, priority, from_ms(available_at), Again(again)
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
