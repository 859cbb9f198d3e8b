"""What happened in the queue: one row per call that changed something."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from embed_pipeline.domain.job import JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    at: datetime
    kind: str
    owner: str | None = None
    reason: str | None = None
    job_ids: tuple[JobId, ...] = ()
    facts: Mapping[str, object] = field(default_factory=dict)
