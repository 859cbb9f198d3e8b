"""The numbers that a queue works by, made from the settings once."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from embed_pipeline.domain.recovery import RecoveryPolicy
from embed_pipeline.domain.transition import RetryPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePolicy:
    lock_duration: timedelta = timedelta(minutes=5)
    max_attempts: int = 3
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    recovery: RecoveryPolicy = field(default_factory=RecoveryPolicy)
