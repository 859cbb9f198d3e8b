"""Between nodes and values: the only place that knows how things are written down.

Times are epoch milliseconds, as the server's own clock gives them. A property that is null is
not there at all, and jobs of other programs may lack what we added: missing means its default.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from embed_pipeline.domain.job import (
    EmbedJob,
    Event,
    JobId,
    JobKey,
    JobRequest,
)
from embed_pipeline.domain.transition import JobChanges, KnownJob
from embed_pipeline.stores.encoding import (
    EPOCH,
    FIRST_MS,
    LAST_MS,
    MILLISECOND,
    Document,
    from_ms,
    plain_fields,
)
from embed_pipeline.stores.neo4j.driver.database import Row
from embed_pipeline.stores.neo4j.driver.times import moment_of
from embed_pipeline.stores.queue.job_fields import read_job, readers_of, status_of, text_of

Properties = Mapping[str, Any]


def in_ms(duration: timedelta) -> int:
    return duration // MILLISECOND


def job_of(node: Properties) -> EmbedJob:
    """Of any job that has an id; what another program wrote in no form of ours does not raise."""
    return read_job(node, _READERS)


def key_of(node: Properties) -> JobKey:
    return (node["entity_uid"], node["model"], node["version"])


def known_job_of(node: Properties) -> KnownJob:
    """With the id '' where another program wrote one that no statement could name."""
    job_id = node["id"]
    return KnownJob(
        id=JobId(job_id if isinstance(job_id, str) else ""),
        status=status_of(node["status"]),
        fail_code=text_of(node["fail_code"]),
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


def event_of(node: Properties) -> Event:
    return Event(
        at=from_ms(node["at"]),
        kind=node["kind"],
        owner=node.get("owner"),
        reason=node.get("reason"),
        job_ids=tuple(JobId(job_id) for job_id in node.get("job_ids", ())),
        facts=json.loads(node.get("facts", "{}")),
    )


def _time(value: object) -> datetime | None:
    if type(value) is int and FIRST_MS <= value <= LAST_MS:
        return from_ms(value)
    return moment_of(value)


_READERS = readers_of(_time)

_MISSING_MEANS_ZERO = frozenset({"recoveries", "strikes", "force", "again"})
"""Not stored when zero or false: fewer properties to touch."""
