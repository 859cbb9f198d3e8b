"""Between nodes and values: the only place that knows how things are written down.

Moments are epoch milliseconds, as the server's own clock gives them. A property that is null is
not there at all, and jobs of other programs may lack what we added: missing means its default.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from embed_pipeline.errors import ErrorCategory
from embed_pipeline.model.event import Event
from embed_pipeline.model.job import DEFAULT_PRIORITY, Again, EmbedJob, JobId
from embed_pipeline.stores.notation import MILLISECOND, STATUSES, from_ms, moment_or_none

Properties = Mapping[str, Any]


def in_ms(duration: timedelta) -> int:
    return duration // MILLISECOND


def job_of(node: Properties) -> EmbedJob:
    category, again = node.get("error_category"), node.get("again")
    created_at = node.get("created_at", 0)
    return EmbedJob(
        id=node["id"],
        # A job without one of these ends as one whose entity is gone, or has another text by now.
        entity_uid=node.get("entity_uid", ""),
        model=node.get("model", ""),
        version=node.get("version", ""),
        status=STATUSES[node["status"]],
        priority=node.get("priority", DEFAULT_PRIORITY),
        created_at=from_ms(created_at),
        available_at=from_ms(node.get("available_at", created_at)),
        processed_at=moment_or_none(node.get("processed_at")),
        lock_owner=node.get("lock_owner"),
        lock_until=moment_or_none(node.get("lock_until")),
        lease_token=node.get("lease_token"),
        last_heartbeat_at=moment_or_none(node.get("last_heartbeat_at")),
        attempts=node.get("attempts", 0),
        max_attempts=node.get("max_attempts", 3),
        recoveries=node.get("recoveries", 0),
        recovered_at=moment_or_none(node.get("recovered_at")),
        strikes=node.get("strikes", 0),
        force=node.get("force", False),
        again=Again(again) if again else Again.NO,
        error=node.get("error"),
        error_type=node.get("error_type"),
        error_category=ErrorCategory(category) if category else None,
        error_stack=node.get("error_stack"),
        fail_code=node.get("fail_code"),
        fail_reason=node.get("fail_reason"),
    )


def event_of(node: Properties) -> Event:
    return Event(
        at=from_ms(node["at"]),
        kind=node["kind"],
        owner=node.get("owner"),
        reason=node.get("reason"),
        job_ids=tuple(JobId(job_id) for job_id in node.get("job_ids", ())),
        facts=json.loads(node.get("facts", "{}")),
    )
