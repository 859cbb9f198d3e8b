"""The fields of a stored job, whatever another program wrote into them.

Reading never raises. A field in no form of ours has its default, so that one such job stops
neither a recovery nor a lease with others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from embed_pipeline.domain.job import DEFAULT_PRIORITY, Again, EmbedJob, EntityUid, JobStatus
from embed_pipeline.errors import ErrorCategory
from embed_pipeline.stores.encoding import EPOCH, JOB_TIMES, LAST_MS, STATUSES, read_moment

Readers = Mapping[str, Callable[[Any], Any]]
"""What a stored value means, by the name of its field."""


def read_job(stored: Mapping[str, Any], readers: Readers) -> EmbedJob:
    """Of any job that has an id; a missing field has its default too."""
    values = _DEFAULTS | {
        name: readers[name](value) for name, value in stored.items() if name in readers
    }
    values["created_at"] = values.get("created_at") or EPOCH
    values["available_at"] = values.get("available_at") or values["created_at"]
    return EmbedJob(**values)


def readers_of(time: Callable[[object], datetime | None]) -> Readers:
    """`time` reads the times of a backend."""
    return _READERS | dict.fromkeys(JOB_TIMES, time)


def text_of(value: object) -> str | None:
    return value if value is None or isinstance(value, str) else str(value)


def status_of(value: object) -> JobStatus:
    """One that we do not know is an end of another program's, which only a person undoes."""
    return STATUSES.get(text_of(value) or "", JobStatus.FAILED)


def _name(value: object) -> str:
    return text_of(value) or ""


def _count(default: int) -> Callable[[object], int]:
    """JavaScript clients store integers as floats. Floats too large to be a count, and strings,
    fall back to the default."""

    def read(value: object) -> int:
        if type(value) is int and value >= 0:
            return value
        return int(value) if isinstance(value, float) and 0 <= value < LAST_MS else default

    return read


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
_READERS: dict[str, Callable[[Any], Any]] = {
    "id": _name,
    "entity_uid": _name,
    "model": _name,
    "version": _name,
    "status": status_of,
    "priority": _count(DEFAULT_PRIORITY),
    "lock_owner": text_of,
    "lease_token": text_of,
    "attempts": _count(0),
    "max_attempts": _count(3),
    "recoveries": _count(0),
    "strikes": _count(0),
    "force": lambda value: value is True or value == 1,
    "again": lambda value: _AGAIN.get(value, Again.NO) if type(value) is int else Again.NO,
    "error": text_of,
    "error_type": text_of,
    "error_category": lambda value: _CATEGORIES.get(text_of(value)),
    "error_stack": text_of,
    "fail_code": text_of,
    "fail_reason": text_of,
}

PLAIN_READERS = readers_of(read_moment)
"""Of a database without a type for times: milliseconds since 1970, or text."""
