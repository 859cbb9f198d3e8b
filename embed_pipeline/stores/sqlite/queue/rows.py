"""Between rows and values: the only place that knows how things are written down."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from functools import lru_cache
from operator import itemgetter
from typing import Any

from embed_pipeline.domain.admission import KnownJob
from embed_pipeline.domain.event import Event
from embed_pipeline.domain.job import Again, EmbedJob, JobId
from embed_pipeline.errors import ErrorCategory
from embed_pipeline.stores.encoding import STATUSES, from_ms

_encode = json.JSONEncoder(separators=(",", ":")).encode


def as_list(values: Iterable[object]) -> str:
    """A list parameter, for `json_each`."""
    return _encode(list(values))


_COLUMNS = tuple(part.name for part in fields(EmbedJob))
_TIMES = [name for name in _COLUMNS if name.endswith(("_at", "_until"))]


def jobs_of(found: Sequence[sqlite3.Row]) -> list[EmbedJob]:
    """Rows of one statement. A row looks its columns up one by one, so they are placed once."""
    if not found:
        return []
    values_of = _values_of(tuple(found[0].keys()))
    return [_job(values_of(row)) for row in found]


@lru_cache
def _values_of(names: tuple[str, ...]) -> Callable[[sqlite3.Row], tuple[Any, ...]]:
    return itemgetter(*(names.index(column) for column in _COLUMNS))


def _job(stored: tuple[Any, ...]) -> EmbedJob:
    values = dict(zip(_COLUMNS, stored, strict=True))
    for name in _TIMES:
        if values[name] is not None:
            values[name] = from_ms(values[name])
    values["status"] = STATUSES[values["status"]]
    values["force"] = bool(values["force"])
    values["again"] = Again(values["again"]) if values["again"] else Again.NO
    if category := values["error_category"]:
        values["error_category"] = ErrorCategory(category)
    return EmbedJob(**values)


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
