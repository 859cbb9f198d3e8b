"""What the asset checks find: red for a reason, and each says what to do about it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import dagster as dg
from pydantic import Field

from embed_pipeline.defs.assets import EMBEDDING_QUEUE, ENTITY_EMBEDDINGS
from embed_pipeline.defs.metadata import Metadata, failed_jobs_metadata
from embed_pipeline.domain.embedding import Coverage
from embed_pipeline.domain.health import HealthStatus
from embed_pipeline.domain.switch import SwitchState
from embed_pipeline.errors import EmbedPipelineError
from embed_pipeline.usecases.insight.coverage import QueueState

COVERAGE, STUCK, HEALTH, FAILED = "coverage", "nothing_stuck", "health", "failed_jobs"

SPECS = [
    dg.AssetCheckSpec(
        COVERAGE,
        asset=ENTITY_EMBEDDINGS,
        description="Every entity has a good vector, or as many jobs are queued as lack one.",
    ),
    dg.AssetCheckSpec(
        STUCK,
        asset=EMBEDDING_QUEUE,
        description="Due jobs move, and no lease outlives its worker.",
    ),
    dg.AssetCheckSpec(
        HEALTH,
        asset=EMBEDDING_QUEUE,
        description="The queue is HEALTHY: not halted, no breaker open, no row of failures.",
    ),
    dg.AssetCheckSpec(
        FAILED,
        asset=EMBEDDING_QUEUE,
        description="No job has failed for good; deleted entities do not count.",
    ),
]
RESUME = "Mend the cause, then launch resume_job."
CRASHES = (
    "Runs die before they complete anything: look at {runs} and at the latest deploy. Jobs wait,"
    " and are failed at their 15th recovery; the first success ends it."
)
BRING_BACK = (
    "Bring its database back, or mend its address and credentials; embed-pipeline doctor looks at"
    " all of it. Nothing is lost: runs go on by themselves when it answers."
)
LOOK = "The latest failures tell whether it is the data or the provider; the first success ends it."
MOST_RUNS = 3
ASSETS = {spec.name: spec.asset_key for spec in SPECS}


class CheckConfig(dg.Config):
    coverage_target: float = Field(
        default=95.0,
        description="Percent of entities with a good vector below which coverage is an error and "
        "not only a warning.",
    )
    patience_minutes: int = Field(
        default=15, description="How long due jobs may wait without anything being completed."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a check found; `serious` decides between an error and a warning."""

    check: str
    passed: bool
    message: str
    serious: bool = False
    metadata: Metadata = field(default_factory=dict)

    def result(self) -> dg.AssetCheckResult:
        return dg.AssetCheckResult(
            asset_key=ASSETS[self.check],
            check_name=self.check,
            passed=self.passed,
            severity=dg.AssetCheckSeverity.ERROR if self.serious else dg.AssetCheckSeverity.WARN,
            description=self.message,
            metadata=self.metadata,
        )

    def evaluation(self) -> dg.AssetCheckEvaluation:
        """The same as an event, for an op that is no check of its own."""
        result = self.result()
        return dg.AssetCheckEvaluation(
            asset_key=ASSETS[self.check],
            check_name=self.check,
            passed=result.passed,
            severity=result.severity,
            description=result.description,
            metadata=result.metadata,
        )


def judge_coverage(coverage: Coverage, state: QueueState, config: CheckConfig) -> Finding:
    metadata: Metadata = {"entities": coverage.entities, "queued": state.queued}
    if coverage.percent is None:
        return _good(COVERAGE, "The graph has no entities yet.", metadata)
    metadata["coverage (%)"] = float(coverage.percent)
    gap = coverage.entities - coverage.embedded
    if not gap:
        return _good(COVERAGE, f"All {coverage.entities} entities have a good vector.", metadata)
    if gap <= state.queued:
        message = f"{gap} entities lack a good vector and {state.queued} jobs are queued."
        return _good(COVERAGE, message, metadata)
    message = (
        f"{gap} entities lack a good vector and only {state.queued} jobs are queued: discover_job "
        "queues what is missing, every 15 minutes by itself"
    )
    if state.parked:
        message += f"; {state.parked} failed jobs stay parked until retry_failed_job"
    return Finding(
        check=COVERAGE,
        passed=False,
        message=message + ".",
        serious=coverage.percent < config.coverage_target,
        metadata=metadata,
    )


def judge_stuck(state: QueueState, config: CheckConfig) -> Finding:
    patience = timedelta(minutes=config.patience_minutes)
    metadata: Metadata = {
        "oldest wait (seconds)": round(state.oldest_wait.total_seconds(), 1),
        "pending": state.status.pending,
        "processing": state.status.processing,
    }
    waits = f"A due job has waited for {_minutes(state.oldest_wait)}"
    last_success = state.health.last_success_at
    idle = last_success is None or state.at - last_success > patience
    if state.oldest_wait > patience and not state.switch.is_running:
        why = f"{state.switch.state}: {state.switch.reason}"
        message = f"{waits} because the queue is {why}. {RESUME}"
        return Finding(check=STUCK, passed=False, message=message, metadata=metadata)
    if state.oldest_wait > patience and idle:
        message = (
            f"{waits} and nothing was completed for as long: look at the latest tick of "
            "embed_queue_sensor, which says why it launches nothing, and at the latest embed_job."
        )
        return Finding(check=STUCK, passed=False, serious=True, message=message, metadata=metadata)
    if state.has_stale:
        message = (
            "Some leases ended without their worker: recovery returns them by itself every "
            "EMBED_JOB_RECOVERY_INTERVAL; if this stays, launch recover_stale_job."
        )
        return Finding(check=STUCK, passed=False, message=message, metadata=metadata)
    return _good(STUCK, "Nothing waits for longer than it should.", metadata)


def judge_health(state: QueueState, *, failed_runs: Sequence[str] = ()) -> Finding:
    """`failed_runs` are the latest embed runs, as long as none of them ended otherwise."""
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
        return _good(HEALTH, f"HEALTHY{f' ({reasons})' if reasons else ''}.", metadata)
    return Finding(
        check=HEALTH,
        passed=False,
        serious=health.status is HealthStatus.CRITICAL,
        message=f"{health.status}: {reasons}. {_remedy(state, failed_runs)}",
        metadata=metadata,
    )


def _remedy(state: QueueState, failed_runs: Sequence[str]) -> str:
    if state.switch.state is SwitchState.HALTED:
        return RESUME
    if state.health.status is HealthStatus.CRITICAL:
        latest = f" ({', '.join(failed_runs[:MOST_RUNS])})" if failed_runs else ""
        return CRASHES.format(runs=f"the latest failed runs of embed_job{latest}")
    return LOOK if state.switch.is_running else RESUME


def judge_failed(state: QueueState) -> Finding:
    if not state.parked:
        return _good(FAILED, "No job has failed.", {"failed": 0})
    return Finding(
        check=FAILED,
        passed=False,
        message=f"{state.parked} jobs have failed and their entities stay without a vector:"
        " mend the cause, then launch retry_failed_job; force_embedding_job retries one entity.",
        metadata={"failed": state.parked} | failed_jobs_metadata(state.failures),
    )


def unreachable(check: str, database: str, error: EmbedPipelineError) -> Finding:
    return Finding(
        check=check,
        passed=False,
        serious=True,
        message=f"CRITICAL ({database} unreachable): {error} {BRING_BACK}",
    )


def _good(check: str, message: str, metadata: Metadata) -> Finding:
    return Finding(check=check, passed=True, message=message, metadata=metadata)


def _minutes(duration: timedelta) -> str:
    return f"{duration / timedelta(minutes=1):.0f} minutes"
