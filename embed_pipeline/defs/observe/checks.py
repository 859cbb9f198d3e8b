"""The asset checks: each decides from what was read, and says what to do if it fails."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import dagster as dg
from pydantic import Field

from embed_pipeline.defs.observe.assets import EMBEDDING_QUEUE, ENTITY_EMBEDDINGS
from embed_pipeline.defs.op import Metadata, table
from embed_pipeline.defs.pipeline import Names
from embed_pipeline.domain.control import SwitchState
from embed_pipeline.domain.diagnosis import Remedy, remedies_for_gaps
from embed_pipeline.domain.health import HealthStatus
from embed_pipeline.domain.job import EmbedJob
from embed_pipeline.domain.partition import Coverage
from embed_pipeline.errors import EmbedPipelineError
from embed_pipeline.telemetry.facts import shortened
from embed_pipeline.usecases.insight.coverage import QueueState

ERROR, WARN = dg.AssetCheckSeverity.ERROR, dg.AssetCheckSeverity.WARN


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    asset: str
    description: str

    def spec(self, names: Names) -> dg.AssetCheckSpec:
        return dg.AssetCheckSpec(
            self.name, asset=names.asset(self.asset), description=self.description
        )


COVERAGE = Check(
    "coverage",
    ENTITY_EMBEDDINGS,
    "Every entity has a valid vector, or as many jobs are queued as vectors are missing.",
)
STUCK = Check(
    "nothing_stuck",
    EMBEDDING_QUEUE,
    "Due jobs are processed, and no lease outlives its worker.",
)
HEALTH = Check(
    "health",
    EMBEDDING_QUEUE,
    "The queue is HEALTHY: not halted, no open breaker, no series of failures.",
)
FAILED = Check(
    "failed_jobs",
    EMBEDDING_QUEUE,
    "No job has failed for good. Jobs of deleted entities do not count.",
)
CHECKS = [COVERAGE, STUCK, HEALTH, FAILED]

GAP_ADVICE = {
    Remedy.DISCOVER: "{count} of them have no job: discover_job queues them, launched by"
    " discover_sensor.",
    Remedy.RUN: "{count} jobs are queued and will be processed.",
    Remedy.RESUME: "{count} jobs are queued, but the queue is stopped: launch resume_job.",
    Remedy.RETRY_FAILED: "{count} jobs have failed: fix the cause, then launch retry_failed_job.",
}
RESUME = "Fix the cause, then launch resume_job."
CRASHES = (
    "Runs crash before they complete anything: check {runs} and the latest deployment. Meanwhile"
    " the jobs wait; at its 15th recovery a job is marked failed. The first success ends this."
)
RECONNECT = (
    "Bring the database back, or fix its address and credentials; `embed-pipeline doctor` checks"
    " all of them. Nothing is lost: runs continue by themselves when it answers again."
)
READ_FAILURES = (
    "The latest failures show whether the data or the provider is the cause. The first success"
    " ends this."
)
MOST_RUNS = 3
LONGEST_ERROR = 200


class CheckConfig(dg.Config):
    coverage_target: float = Field(
        default=95.0,
        description="Percentage of entities with a valid vector below which the coverage check is "
        "an error instead of a warning.",
    )
    patience_minutes: int = Field(
        default=15, description="How long due jobs may wait without any job being completed."
    )


def check_coverage(
    coverage: Coverage, state: QueueState, config: CheckConfig
) -> dg.AssetCheckResult:
    metadata: Metadata = {"entities": coverage.entities, "queued": state.queued}
    if coverage.percent is None:
        return _result(COVERAGE, "The graph has no entities yet.", metadata)
    metadata["coverage (%)"] = float(coverage.percent)
    gap = coverage.gaps
    if not gap:
        message = f"All {coverage.embeddable} entities with text have a vector."
        return _result(COVERAGE, message, metadata)
    if gap <= state.queued:
        message = f"{gap} entities lack a valid vector and {state.queued} jobs are queued."
        return _result(COVERAGE, message, metadata)
    remedies = remedies_for_gaps(
        coverage, queued=state.queued, parked=state.parked, stopped=not state.switch.is_running
    )
    advice = [GAP_ADVICE[remedy].format(count=count) for remedy, count in remedies.items()]
    message = f"{gap} entities lack a valid vector. {' '.join(advice)}"
    failed = ERROR if coverage.percent < config.coverage_target else WARN
    return _result(COVERAGE, message, metadata, failed)


def check_stuck(state: QueueState, config: CheckConfig) -> dg.AssetCheckResult:
    patience = timedelta(minutes=config.patience_minutes)
    metadata: Metadata = {
        "oldest wait (seconds)": round(state.oldest_wait.total_seconds(), 1),
        "pending": state.status.pending,
        "processing": state.status.processing,
    }
    waits = f"A due job has waited for {state.oldest_wait / timedelta(minutes=1):.0f} minutes"
    last_success = state.health.last_success_at
    idle = last_success is None or state.at - last_success > patience
    if state.oldest_wait > patience and not state.switch.is_running:
        why = f"{state.switch.state}: {state.switch.reason}"
        return _result(STUCK, f"{waits} because the queue is {why}. {RESUME}", metadata, WARN)
    if state.oldest_wait > patience and idle:
        message = (
            f"{waits} and nothing was completed meanwhile. The latest tick of embed_queue_sensor"
            " says why it launches nothing; also check the latest run of embed_job."
        )
        return _result(STUCK, message, metadata, ERROR)
    if state.has_stale:
        message = (
            "Some leases expired because their worker died. Recovery returns these jobs by itself"
            " every EMBED_JOB_RECOVERY_INTERVAL; if this message stays, launch recover_stale_job."
        )
        return _result(STUCK, message, metadata, WARN)
    return _result(STUCK, "No due job waits longer than it should.", metadata)


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
    if health.status is HealthStatus.HEALTHY:
        return _result(HEALTH, f"HEALTHY{f' ({reasons})' if reasons else ''}.", metadata)
    message = f"{health.status}: {reasons}. {_health_advice(state, failed_runs)}"
    failed = ERROR if health.status is HealthStatus.CRITICAL else WARN
    return _result(HEALTH, message, metadata, failed)


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
        return _result(FAILED, "No job has failed.", metadata)
    message = (
        f"{state.parked} jobs have failed and their entities stay without a vector. Fix the cause,"
        " then launch retry_failed_job; force_embedding_job retries a single entity."
    )
    metadata["latest failures"] = _failures(state.failures)
    return _result(FAILED, message, metadata, WARN)


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


def unreachable(check: Check, store: str, error: EmbedPipelineError) -> dg.AssetCheckResult:
    return _result(check, f"CRITICAL ({store} unreachable): {error} {RECONNECT}", {}, ERROR)


def addressed(result: dg.AssetCheckResult, names: Names) -> dg.AssetCheckResult:
    """The result for the pipeline's own asset, with the pipeline's names in its sentence."""
    (check,) = (check for check in CHECKS if check.name == result.check_name)
    return result._replace(
        asset_key=names.asset(check.asset), description=names.in_text(result.description or "")
    )


def _result(
    check: Check,
    message: str,
    metadata: Metadata,
    failed: dg.AssetCheckSeverity | None = None,
) -> dg.AssetCheckResult:
    """A check passes unless it `failed` with a severity."""
    return dg.AssetCheckResult(
        check_name=check.name,
        passed=failed is None,
        severity=failed or WARN,
        description=message,
        metadata=metadata,
    )
