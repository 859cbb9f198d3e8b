"""How long leases, attempts and ended jobs last, and how many runs work at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from embed_pipeline.settings.groups.general import Environment
from embed_pipeline.settings.parsing.kinds import DAY_MS, DAY_SEC, duration, whole
from embed_pipeline.settings.parsing.variables import Findings, parse, setting

_RETENTION = duration("days", 7, 30)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    retention: timedelta = setting(
        "EMBED_JOB_RETENTION_DAYS",
        _RETENTION,
        "How long completed and failed jobs are kept.",
        default="14",
        shown="14; must be set in production",
    )
    recovery_interval: timedelta | None = setting(
        "EMBED_JOB_RECOVERY_INTERVAL",
        duration("milliseconds", 1000, DAY_MS, zero="off"),
        "How often jobs of vanished workers are returned to the queue.",
        default="60000",
    )
    """None: jobs are not recovered automatically."""
    lock_duration: timedelta = setting(
        "EMBED_JOB_LOCK_DURATION",
        duration("milliseconds", 1000, DAY_MS),
        "How long a lease lasts without a heartbeat.",
        default="300000",
    )
    heartbeat_interval: timedelta = setting(
        "EMBED_JOB_HEARTBEAT_INTERVAL",
        duration("milliseconds", 100, DAY_MS),
        "How often a worker extends its leases; never less often than 0.4 of the lock duration.",
        default="120000",
    )
    max_attempts: int = setting(
        "EMBED_JOB_MAX_ATTEMPTS",
        whole("attempts", 1, 100),
        "How many recorded failures end a job.",
        default="3",
    )
    max_recoveries: int = setting(
        "EMBED_JOB_MAX_RECOVERIES",
        whole("recoveries", 1, 15),
        "How often a job may lose its worker before it is failed.",
        default="5",
    )
    batch_size: int = setting(
        "EMBED_JOB_BATCH_SIZE",
        whole("jobs", 1, 10_000),
        "How many jobs one lease takes at most.",
        default="2000",
    )
    max_runs: int = setting(
        "EMBED_MAX_RUNS",
        whole("runs", 1, 100),
        "How many embed runs the sensor keeps going at once; workers outside of Dagster count too.",
        default="2",
    )
    run_for: timedelta = setting(
        "EMBED_RUN_SECONDS",
        duration("seconds", 10, DAY_SEC),
        "How long an embed run in Dagster goes on leasing. Longer runs are worth it where a run "
        "takes long to start, as in Kubernetes; Dagster ends one six minutes later at the latest.",
        default="240",
    )
    run_arrival: timedelta = setting(
        "EMBED_RUN_ARRIVAL",
        duration("seconds", 10, 3_600),
        "How long a run may take from its launch to its first lease. A run that holds no lease by "
        "then counts as dead, and the sensor launches another.",
        default="60",
    )
    depth: int = setting(
        "EMBED_QUEUE_DEPTH",
        whole("jobs", 100, 10_000_000),
        "How many pending jobs discovery fills the queue up to; it refills below half of it. "
        "Entities that are created or marked are queued at once all the same.",
        default="100000",
    )
    audit_for: timedelta = setting(
        "EMBED_AUDIT_SECONDS",
        duration("seconds", 1, 1_200),
        "How long one round of the audit reads the graph, every five minutes.",
        default="60",
    )


def queue_settings(
    environ: Mapping[str, str], environment: Environment, findings: Findings
) -> QueueSettings:
    given = parse(QueueSettings, environ, findings)
    if environment is Environment.PRODUCTION and "EMBED_JOB_RETENTION_DAYS" not in environ:
        findings.refuse(
            "EMBED_JOB_RETENTION_DAYS", f"be set in production, to {_RETENTION.allowed}"
        )
    if not given.recovery_interval:
        findings.note(
            "EMBED_JOB_RECOVERY_INTERVAL is 0: automatic recovery is OFF, so jobs of crashed"
            " workers stay stuck until recovery is run by hand."
        )
    return replace(given, recovery_interval=given.recovery_interval or None)
