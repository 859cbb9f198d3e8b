"""The stuck-job reaper for SQL job tables, and the worker side that keeps leases and heartbeats."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from embed_pipeline.errors import package_missing

try:
    import psycopg  # noqa: F401
except ModuleNotFoundError as error:  # an extra
    raise package_missing("The reaper", "psycopg", extra="reaper") from error

from embed_pipeline.reaper.connection import PostgresDatabase
from embed_pipeline.reaper.heartbeat import Heartbeat, heartbeat
from embed_pipeline.reaper.migration import Step, migrate, plan
from embed_pipeline.reaper.policy import LADDER, Backoff, ReaperPolicy, Stage, StageLeases
from embed_pipeline.reaper.queue import Claim, JobQueue, Outcome
from embed_pipeline.reaper.report import Reaped, SweepResult, TableSweep
from embed_pipeline.reaper.service import in_background, stopped_by_signals, watch
from embed_pipeline.reaper.sweep import Reaper
from embed_pipeline.settings import ReaperSettings

__all__ = [
    "Claim",
    "Heartbeat",
    "JobQueue",
    "Outcome",
    "PostgresDatabase",
    "Reaped",
    "Reaper",
    "ReaperPolicy",
    "Stage",
    "Step",
    "SweepResult",
    "TableSweep",
    "database_of",
    "heartbeat",
    "in_background",
    "migrate",
    "plan",
    "policy_of",
    "reaper_of",
    "stopped_by_signals",
    "watch",
]


def database_of(settings: ReaperSettings) -> PostgresDatabase:
    return PostgresDatabase(settings.database_url.get_secret_value())


def policy_of(settings: ReaperSettings) -> ReaperPolicy:
    return ReaperPolicy(
        leases=StageLeases(
            clip=settings.lease_clip,
            asr=settings.lease_asr,
            burnin=settings.lease_burnin,
            default=settings.lease_default,
        ),
        backoff=Backoff(base=settings.backoff_base, ceiling=settings.backoff_ceiling or LADDER[-1]),
        max_attempts=settings.max_attempts,
    )


def reaper_of(
    settings: ReaperSettings, *, count: Callable[[Mapping[str, int]], None] | None = None
) -> Reaper:
    """`count` is called with each sweep's counters, to add them up."""
    return Reaper(
        database_of(settings),
        policy=policy_of(settings),
        batch_size=settings.batch_size,
        count=count,
    )
