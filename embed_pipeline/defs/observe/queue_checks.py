"""The checks of the queue: nothing is stuck, health, failed jobs."""

from collections.abc import Sequence
from datetime import timedelta

import dagster as dg

from embed_pipeline.defs.observe.checks import (
    ERROR,
    FAILED,
    HEALTH,
    STUCK,
    WARN,
    CheckConfig,
    is_idle,
    result_of,
)
from embed_pipeline.defs.op import Metadata, in_words, table
from embed_pipeline.domain.control import SwitchState
from embed_pipeline.domain.health import HealthStatus
from embed_pipeline.domain.job import EmbedJob
from embed_pipeline.telemetry.facts import shortened
from embed_pipeline.usecases.insight.coverage import QueueState

RESUME = "Fix the cause, then launch resume_job."
CRASHES = (
    "Runs crash before they complete anything: check {runs} and the latest deployment. Meanwhile"
    " the jobs wait; at its 15th recovery a job is marked failed. The first success ends this."
)
READ_FAILURES = (
    "The latest failures show whether the data or the provider is the cause. The first success"
    " ends this."
)
MOST_RUNS = 3
LONGEST_ERROR = 200


def check_stuck(state: QueueState, config: CheckConfig) -> dg.AssetCheckResult:
    patience = timedelta(minutes=config.patience_minutes)
    metadata: Metadata = {
        "oldest wait (seconds)": round(state.oldest_wait.total_seconds(), 1),
        "pending": state.status.pending,
        "processing": state.status.processing,
    }
    waits = f"A due job has waited for {state.oldest_wait / timedelta(minutes=1):.0f} minutes"
    if state.oldest_wait > patience and not state.switch.is_running:
        why = f"{state.switch.state}: {state.switch.reason}"
        return result_of(STUCK, f"{waits} because the queue is {why}. {RESUME}", metadata, WARN)
    if state.oldest_wait > patience and is_idle(state, patience):
        message = (
            f"{waits} and nothing was completed meanwhile. The latest tick of embed_queue_sensor"
            " says why it launches nothing; also check the latest run of embed_job."
        )
        return result_of(STUCK, message, metadata, ERROR)
    if state.has_stale:
        message = (
            "Some leases expired because their worker died. Recovery returns these jobs by itself"
            " every EMBED_JOB_RECOVERY_INTERVAL; if this message stays, launch recover_stale_job."
        )
        return result_of(STUCK, message, metadata, WARN)
    return result_of(STUCK, "No due job waits longer than it should.", metadata)


def check_health(state: QueueState, *, failed_runs: Sequence[str] = ()) -> dg.AssetCheckResult:
    """`failed_runs` are the latest runs of `embed_job`, as far as they failed in a row."""
    health = state.health
    metadata: Metadata = {
        "status": health.status.value,
        "consecutive failures": health.consecutive_failures,
    }
    if health.last_success_at:
        metadata["last success"] = health.last_success_at.isoformat(timespec="seconds")
    if health.error_patterns:
        metadata["error patterns"] = dg.MetadataValue.md(
            "\n".join(f"- {count} × {pattern}" for pattern, count in health.error_patterns)
        )
    reasons = "; ".join(health.reasons)
    recent = _recent_outcomes(state)
    if health.status is HealthStatus.HEALTHY:
        message = f"HEALTHY{f' ({reasons})' if reasons else ''}. {recent}".rstrip()
        return result_of(HEALTH, message, metadata)
    advice = _health_advice(state, failed_runs)
    message = " ".join(filter(None, [f"{health.status}: {reasons}.", recent, advice]))
    failed = ERROR if health.status is HealthStatus.CRITICAL else WARN
    return result_of(HEALTH, message, metadata, failed)


def _recent_outcomes(state: QueueState) -> str:
    health = state.health
    if not health.recent:
        return ""
    failed = f"{health.recent_failures} of the last {health.recent} attempts failed"
    if health.last_success_at is None:
        return f"{failed}; none has succeeded yet."
    return f"{failed}; the last success was {in_words(state.at - health.last_success_at)} ago."


def _health_advice(state: QueueState, failed_runs: Sequence[str]) -> str:
    if state.switch.state is SwitchState.HALTED:
        return RESUME
    if state.health.status is HealthStatus.CRITICAL:
        latest = f" ({', '.join(failed_runs[:MOST_RUNS])})" if failed_runs else ""
        return CRASHES.format(runs=f"the latest failed runs of embed_job{latest}")
    return READ_FAILURES if state.switch.is_running else RESUME


def check_failed_jobs(state: QueueState) -> dg.AssetCheckResult:
    metadata: Metadata = {"failed": state.parked}
    if not state.parked:
        return result_of(FAILED, "No job has failed.", metadata)
    message = (
        f"{state.parked} jobs have failed and their entities stay without a vector. Fix the cause,"
        " then launch retry_failed_job; force_embedding_job retries a single entity."
    )
    metadata["latest failures"] = _failures(state.failures)
    return result_of(FAILED, message, metadata, WARN)


def _failures(jobs: Sequence[EmbedJob]) -> dg.TableMetadataValue:
    return table(
        [
            {
                "entity": job.entity_uid,
                "category": job.error_category.value if job.error_category else "",
                "error": shortened(job.error or "", LONGEST_ERROR),
                "attempts": f"{job.attempts} of {job.max_attempts}",
                "ended": f"{job.processed_at:%Y-%m-%d %H:%M} UTC" if job.processed_at else "",
                "job": job.id,
            }
            for job in jobs
        ]
    )
