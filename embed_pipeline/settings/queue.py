"""How long leases, attempts and ended jobs last, and how many work at once."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from embed_pipeline.settings.findings import Findings
from embed_pipeline.settings.kinds import Whole
from embed_pipeline.settings.shape import Environment, QueueSettings
from embed_pipeline.settings.variables import Variables, setting

DAY_MS = 86_400_000
_RETENTION = Whole("days", 7, 30)


class QueueVariables(Variables):
    retention_days: Annotated[int, _RETENTION] = setting(
        "EMBED_JOB_RETENTION_DAYS",
        "How long completed and failed jobs are kept.",
        default=14,
        shown="14; must be set in production",
    )
    recovery_interval_ms: Annotated[int, Whole("milliseconds", 1000, DAY_MS, zero="off")] = setting(
        "EMBED_JOB_RECOVERY_INTERVAL",
        "How often jobs of vanished workers are returned to the queue.",
        default=60_000,
    )
    lock_duration_ms: Annotated[int, Whole("milliseconds", 1000, DAY_MS)] = setting(
        "EMBED_JOB_LOCK_DURATION",
        "How long a lease lasts without a heartbeat.",
        default=300_000,
    )
    heartbeat_interval_ms: Annotated[int, Whole("milliseconds", 100, DAY_MS)] = setting(
        "EMBED_JOB_HEARTBEAT_INTERVAL",
        "How often a worker extends its leases; never less often than 0.4 of the lock duration.",
        default=120_000,
    )
    max_attempts: Annotated[int, Whole("attempts", 1, 100)] = setting(
        "EMBED_JOB_MAX_ATTEMPTS",
        "How many recorded failures end a job.",
        default=3,
    )
    max_recoveries: Annotated[int, Whole("recoveries", 1, 15)] = setting(
        "EMBED_JOB_MAX_RECOVERIES",
        "How often a job may lose its worker before it is failed.",
        default=5,
    )
    batch_size: Annotated[int, Whole("jobs", 1, 10_000)] = setting(
        "EMBED_JOB_BATCH_SIZE",
        "How many jobs one lease takes at most.",
        default=2_000,
    )
    max_runs: Annotated[int, Whole("runs", 1, 100)] = setting(
        "EMBED_MAX_RUNS",
        "How many embed runs the sensor keeps at work; workers outside of Dagster count too.",
        default=2,
    )


def queue_settings(
    given: QueueVariables, environment: Environment, findings: Findings
) -> QueueSettings:
    if environment is Environment.PRODUCTION and "retention_days" not in given.model_fields_set:
        findings.refuse(
            "EMBED_JOB_RETENTION_DAYS", f"be set in production, to {_RETENTION.allowed}"
        )
    if given.recovery_interval_ms == 0:
        findings.note(
            "EMBED_JOB_RECOVERY_INTERVAL is 0: automatic recovery is OFF, so jobs of crashed"
            " workers stay stuck until somebody runs recovery by hand."
        )
    return QueueSettings(
        retention=timedelta(days=given.retention_days),
        recovery_interval=milliseconds(given.recovery_interval_ms) or None,
        lock_duration=milliseconds(given.lock_duration_ms),
        heartbeat_interval=milliseconds(given.heartbeat_interval_ms),
        max_attempts=given.max_attempts,
        max_recoveries=given.max_recoveries,
        batch_size=given.batch_size,
        max_runs=given.max_runs,
    )


def milliseconds(number: int) -> timedelta:
    return timedelta(milliseconds=number)
