"""The stuck-job reaper for SQL job tables, and the worker side that keeps leases and heartbeats."""

from __future__ import annotations

from embed_pipeline.errors import ConfigurationError

try:
    import psycopg  # noqa: F401
except ModuleNotFoundError as error:  # an extra; whoever asked for the reaper gets the sentence
    raise ConfigurationError(
        ["The reaper needs psycopg: pip install 'embed-pipeline[reaper]'."]
    ) from error

from embed_pipeline.ports.queue_control import Counters
from embed_pipeline.reaper.connection import PostgresDatabase
from embed_pipeline.reaper.counting import QueueCounters
from embed_pipeline.reaper.heartbeat import Heartbeat, heartbeat
from embed_pipeline.reaper.migration import Step, migrate, plan
from embed_pipeline.reaper.policy import ReaperPolicy, Stage, policy_of
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
    "QueueCounters",
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


def reaper_of(settings: ReaperSettings, *, counters: Counters | None = None) -> Reaper:
    return Reaper(
        database_of(settings),
        policy=policy_of(settings),
        batch_size=settings.batch_size,
        counters=counters,
    )
