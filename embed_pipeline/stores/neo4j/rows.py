"""Between nodes and values: the only place that knows how things are written down.

Moments are epoch milliseconds, as the server's own clock gives them. A property that is null is
not there at all, and jobs of other programs may lack what we added: missing means its default.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from embed_pipeline.errors import ErrorCategory
from embed_pipeline.model.event import Event
from embed_pipeline.model.job import (
    DEFAULT_PRIORITY,
    Again,
    EmbedJob,
    EntityUid,
    JobId,
    JobStatus,
)
from embed_pipeline.stores.neo4j.moments import moment_of
from embed_pipeline.stores.notation import EPOCH, FIRST_MS, LAST_MS, MILLISECOND, STATUSES, from_ms

Properties = Mapping[str, Any]


def in_ms(duration: timedelta) -> int:
    return duration // MILLISECOND


def job_of(node: Properties) -> EmbedJob:
    """Of any job that has an id; what another program wrote in no form of ours does not raise."""
    created_at = _moment(node.get("created_at")) or EPOCH
    return EmbedJob(
        id=JobId(_text(node["id"]) or ""),
        # A job without one of these ends as one whose entity is gone, or has another text by now.
        entity_uid=EntityUid(_text(node.get("entity_uid")) or ""),
        model=_text(node.get("model")) or "",
        version=_text(node.get("version")) or "",
        status=status_of(node.get("status")),
        priority=_count(node.get("priority"), DEFAULT_PRIORITY),
        created_at=created_at,
        available_at=_moment(node.get("available_at")) or created_at,
        processed_at=_moment(node.get("processed_at")),
        lock_owner=_text(node.get("lock_owner")),
        lock_until=_moment(node.get("lock_until")),
        lease_token=_text(node.get("lease_token")),
        last_heartbeat_at=_moment(node.get("last_heartbeat_at")),
        attempts=_count(node.get("attempts"), 0),
        max_attempts=_count(node.get("max_attempts"), 3),
        recoveries=_count(node.get("recoveries"), 0),
        recovered_at=_moment(node.get("recovered_at")),
        strikes=_count(node.get("strikes"), 0),
        force=node.get("force") is True,
        again=_AGAIN.get(_count(node.get("again"), 0), Again.NO),
        error=_text(node.get("error")),
        error_type=_text(node.get("error_type")),
        error_category=_CATEGORIES.get(_text(node.get("error_category"))),
        error_stack=_text(node.get("error_stack")),
        fail_code=_text(node.get("fail_code")),
        fail_reason=_text(node.get("fail_reason")),
    )


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


_AGAIN = {again.value: again for again in Again}
_CATEGORIES: dict[str | None, ErrorCategory] = {c.value: c for c in ErrorCategory}


def _text(value: object) -> str | None:
    return value if value is None or isinstance(value, str) else str(value)


def _count(value: object, default: int) -> int:
    """Numbers of JavaScript are floats; the largest are none, as little as a text is."""
    if type(value) is int and value >= 0:
        return value
    return int(value) if isinstance(value, float) and 0 <= value < LAST_MS else default


def _moment(value: object) -> datetime | None:
    if type(value) is int and FIRST_MS <= value <= LAST_MS:
        return from_ms(value)
    return moment_of(value)
