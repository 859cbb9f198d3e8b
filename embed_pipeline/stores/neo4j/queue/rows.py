"""Between nodes and values: the only place that knows how things are written down.

Times are epoch milliseconds, as the server's own clock gives them. A property that is null is
not there at all, and jobs of other programs may lack what we added: missing means its default.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from embed_pipeline.domain.admission import KnownJob
from embed_pipeline.domain.job import (
    DEFAULT_PRIORITY,
    Again,
    EmbedJob,
    EntityUid,
    Event,
    JobId,
    JobKey,
    JobRequest,
    JobStatus,
)
from embed_pipeline.domain.transition import JobChanges
from embed_pipeline.errors import ErrorCategory
from embed_pipeline.stores.encoding import (
    EPOCH,
    FIRST_MS,
    LAST_MS,
    MILLISECOND,
    STATUSES,
    Document,
    from_ms,
    plain_fields,
)
from embed_pipeline.stores.neo4j.driver.database import Row
from embed_pipeline.stores.neo4j.driver.times import moment_of

Properties = Mapping[str, Any]


def in_ms(duration: timedelta) -> int:
    return duration // MILLISECOND


def job_of(node: Properties) -> EmbedJob:
    """Of any job that has an id; what another program wrote in no form of ours does not raise."""
    values = _DEFAULTS | {
        name: _READERS[name](value) for name, value in node.items() if name in _READERS
    }
    values["created_at"] = values.get("created_at") or EPOCH
    values["available_at"] = values.get("available_at") or values["created_at"]
    return EmbedJob(**values)


def key_of(node: Properties) -> JobKey:
    return (node["entity_uid"], node["model"], node["version"])


def known_job_of(node: Properties) -> KnownJob:
    """With the id '' where another program wrote one that no statement could name."""
    job_id = node["id"]
    return KnownJob(
        id=JobId(job_id if isinstance(job_id, str) else ""),
        status=status_of(node["status"]),
        fail_code=_text(node["fail_code"]),
        priority=_READERS["priority"](node["priority"]),
        available_at=_time(node["available_at"]) or EPOCH,
        again=_READERS["again"](node["again"]),
    )


def new_job_fields(job_id: JobId, request: JobRequest) -> dict[str, object]:
    return {
        "id": job_id,
        "entity_uid": request.entity_uid,
        "model": request.model,
        "version": request.version,
        "priority": request.priority,
        "force": request.force or None,
    }


def stored_fields(changes: JobChanges) -> dict[str, object]:
    """Null for what is not stored."""
    return {
        name: None if name in _MISSING_MEANS_ZERO and not value else value
        for name, value in plain_fields(changes).items()
    }


def documents_of(found: Iterable[Row]) -> dict[str, Document]:
    return {row["name"]: json.loads(row["value"]) for row in found}


def status_of(value: object) -> JobStatus:
    """One that we do not know is an end of another program's, which only a person undoes."""
    return STATUSES.get(_text(value) or "", JobStatus.FAILED)


def event_of(node: Properties) -> Event:
    return Event(
        at=from_ms(node["at"]),
        kind=node["kind"],
        owner=node.get("owner"),
        reason=node.get("reason"),
        job_ids=tuple(JobId(job_id) for job_id in node.get("job_ids", ())),
        facts=json.loads(node.get("facts", "{}")),
    )


def _text(value: object) -> str | None:
    return value if value is None or isinstance(value, str) else str(value)


def _name(value: object) -> str:
    return _text(value) or ""


def _count(default: int) -> Callable[[object], int]:
    """JavaScript clients store integers as floats. Floats too large to be a count, and strings,
    fall back to the default."""

    def read(value: object) -> int:
        if type(value) is int and value >= 0:
            return value
        return int(value) if isinstance(value, float) and 0 <= value < LAST_MS else default

    return read


def _time(value: object) -> datetime | None:
    if type(value) is int and FIRST_MS <= value <= LAST_MS:
        return from_ms(value)
    return moment_of(value)


_MISSING_MEANS_ZERO = frozenset({"recoveries", "strikes", "force", "again"})
"""Not stored when zero or false: fewer properties to touch."""

_AGAIN = {again.value: again for again in Again}
_CATEGORIES: dict[str | None, ErrorCategory] = {c.value: c for c in ErrorCategory}

_DEFAULTS: dict[str, Any] = {
    # A job without one of these ends as one whose entity is gone, or has another text by now.
    "entity_uid": EntityUid(""),
    "model": "",
    "version": "",
    "status": JobStatus.FAILED,
    "priority": DEFAULT_PRIORITY,
}
_READERS: Mapping[str, Callable[[Any], Any]] = {
    "id": _name,
    "entity_uid": _name,
    "model": _name,
    "version": _name,
    "status": status_of,
    "priority": _count(DEFAULT_PRIORITY),
    "created_at": _time,
    "available_at": _time,
    "processed_at": _time,
    "lock_owner": _text,
    "lock_until": _time,
    "lease_token": _text,
    "last_heartbeat_at": _time,
    "attempts": _count(0),
    "max_attempts": _count(3),
    "recoveries": _count(0),
    "recovered_at": _time,
    "strikes": _count(0),
    "force": lambda value: value is True,
    "again": lambda value: _AGAIN.get(value, Again.NO) if type(value) is int else Again.NO,
    "error": _text,
    "error_type": _text,
    "error_category": lambda value: _CATEGORIES.get(_text(value)),
    "error_stack": _text,
    "fail_code": _text,
    "fail_reason": _text,
}
