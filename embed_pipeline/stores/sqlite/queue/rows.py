"""Values as parameters of SQLite."""

from __future__ import annotations

import json
from collections.abc import Iterable

from embed_pipeline.domain.job import EmbedJob
from embed_pipeline.stores.encoding import to_ms


def as_list(values: Iterable[object]) -> str:
    """A list parameter, for `json_each`: one text and one plan for any length."""
    return json.dumps(list(values), separators=(",", ":"))


def new_job_fields(job: EmbedJob) -> dict[str, object]:
    """What a new job does not have by default."""
    return {
        "id": job.id,
        "entity_uid": job.entity_uid,
        "model": job.model,
        "version": job.version,
        "priority": job.priority,
        "created_at": to_ms(job.created_at),
        "available_at": to_ms(job.available_at),
        "max_attempts": job.max_attempts,
        "force": job.force,
    }
