"""Rows of SQL: jobs, documents, events and counters as the values that the engine knows."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from types import NoneType
from typing import Any

from embed_pipeline.domain.job import Again, EmbedJob, Event, JobKey
from embed_pipeline.domain.transition import KnownJob
from embed_pipeline.errors import ErrorCategory
from embed_pipeline.stores.encoding import (
    EPOCH,
    JOB_FIELDS,
    JOB_TIMES,
    STATUSES,
    from_ms,
    read_moment,
)
from embed_pipeline.stores.queue.job_fields import PLAIN_READERS, read_job, text_of
from embed_pipeline.stores.queue.transaction import Reading

READ_STATES = "SELECT name, value FROM {state} WHERE {listed_names} AND value IS NOT NULL"

READ_ALL_STATES = "SELECT name, value FROM {state} WHERE value IS NOT NULL"

READ_COUNTERS = "SELECT name, sum(value) AS value FROM {counter} GROUP BY name ORDER BY name"

RECENT_EVENTS = """
SELECT at, kind, owner, reason, CAST(job_ids AS text) AS job_ids, CAST(facts AS text) AS facts
FROM {event} WHERE CAST(:kind AS text) IS NULL OR kind = :kind ORDER BY seq DESC LIMIT :limit
"""


class SqlReading(Reading):
    """A running transaction that runs statements."""

    @abstractmethod
    def all(self, statement: str, **parameters: object) -> list[Any]:
        """Rows, whose values are found by name; the backend adds the time and its dialect."""

    @abstractmethod
    def tuples(self, statement: str, **parameters: object) -> Sequence[Iterable[Any]]:
        """Rows, whose values come in the order of the statement."""

    @abstractmethod
    def listed(self, values: Iterable[object]) -> object:
        """A list as one parameter."""

    def _load(self, names: Sequence[str] | None) -> Mapping[str, str]:
        if names is None:
            found = self.all(READ_ALL_STATES)
        else:
            found = self.all(READ_STATES, names=self.listed(names))
        return {row["name"]: row["value"] for row in found}

    def events(self, *, limit: int, kind: str | None) -> list[Event]:
        return [
            Event(
                at=from_ms(at),
                kind=event,
                owner=owner,
                reason=reason,
                job_ids=tuple(json.loads(job_ids)),
                facts=json.loads(facts),
            )
            for at, event, owner, reason, job_ids, facts in self.tuples(
                RECENT_EVENTS, kind=kind, limit=limit
            )
        ]

    def counters(self) -> dict[str, int]:
        return {row["name"]: int(row["value"]) for row in self.all(READ_COUNTERS)}


def known_job_of(values: Iterable[Any]) -> tuple[JobKey, KnownJob]:
    """From the values of `{known_columns}`."""
    uid, model, version, job_id, status, fail_code, priority, available_at, again = values
    return (uid, model, version), KnownJob(
        id=job_id,
        status=STATUSES[status],
        fail_code=text_of(fail_code),
        priority=PLAIN_READERS["priority"](priority),
        available_at=read_moment(available_at) or EPOCH,
        again=PLAIN_READERS["again"](again),
    )


def job_of(values: Iterable[Any]) -> EmbedJob:
    """From the values of `JOB_FIELDS`. Rows as we write them take the short way."""
    row = tuple(values)
    if _is_ours(tuple(map(type, row))):
        try:
            return _own_job(row)
        except (LookupError, OverflowError):  # a number beyond its range
            pass
    return read_job(dict(zip(JOB_FIELDS, row, strict=True)), PLAIN_READERS)


def _own_job(row: tuple[Any, ...]) -> EmbedJob:
    """What is not converted here is stored as it is."""
    fields = dict(zip(JOB_FIELDS, row, strict=True))
    fields["status"] = STATUSES[fields["status"]]
    fields["force"] = bool(fields["force"])
    fields["again"] = _AGAIN[fields["again"]]
    if fields["error_category"]:
        fields["error_category"] = _CATEGORIES[fields["error_category"]]
    for name in JOB_TIMES:
        if (value := fields[name]) is not None:
            fields[name] = from_ms(value)
    return EmbedJob(**fields)


@cache
def _is_ours(types: tuple[type, ...]) -> bool:
    """Whether every field has a type that we write."""
    return all(
        given in _TYPES.get(name, _TEXT) for name, given in zip(JOB_FIELDS, types, strict=True)
    )


_AGAIN = {again.value: again for again in Again}
_CATEGORIES = {category.value: category for category in ErrorCategory}
_COUNTS = ("priority", "attempts", "max_attempts", "recoveries", "strikes", "force", "again")
_TEXT = (str, NoneType)
_TYPES: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(_COUNTS, (int, bool)),
    **dict.fromkeys(JOB_TIMES, (int, NoneType)),
    **dict.fromkeys(("created_at", "available_at"), (int,)),
}
