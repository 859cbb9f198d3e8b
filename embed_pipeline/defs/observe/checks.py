"""The asset checks and that of coverage. Each decides from what was read and says what to do."""

from dataclasses import dataclass
from datetime import timedelta

import dagster as dg
from pydantic import Field

from embed_pipeline.defs.assets import Embeddings
from embed_pipeline.defs.op import Metadata, in_words
from embed_pipeline.defs.pipeline import EMBEDDING_QUEUE, ENTITY_EMBEDDINGS, Names
from embed_pipeline.domain.diagnosis import Remedy, remedies_for_gaps
from embed_pipeline.errors import EmbedPipelineError
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
    "Every entity has a valid vector, or has lacked one for a few minutes only.",
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
RECONNECT = (
    "Bring the database back, or fix its address and credentials; `embed-pipeline doctor` checks"
    " all of them. Nothing is lost: runs continue by themselves when it answers again."
)


class CheckConfig(dg.Config):
    coverage_target: float = Field(
        default=95.0,
        description="Percentage of entities with a valid vector below which the coverage check is "
        "an error instead of a warning.",
    )
    gap_minutes: int = Field(
        default=15, description="How long vectors may be missing before the coverage check fails."
    )
    patience_minutes: int = Field(
        default=15, description="How long due jobs may wait without any job being completed."
    )


def check_coverage(read: Embeddings, config: CheckConfig) -> dg.AssetCheckResult:
    """About the age of the oldest gap: while data changes, some vector is always missing."""
    coverage, age = read.coverage, read.gap_age
    metadata: Metadata = {"entities": coverage.entities, "queued": read.state.queued}
    if coverage.percent is None:
        return result_of(COVERAGE, "The graph has no entities yet.", metadata)
    metadata["coverage (%)"] = float(coverage.percent)
    if not coverage.gaps:
        message = f"All {coverage.embeddable} entities with text have a vector."
        return result_of(COVERAGE, message, metadata)
    metadata["missing for (minutes)"] = round(age / timedelta(minutes=1), 1)
    since = f"{read.state.at - age:%H:%M:%S} UTC, for {in_words(age)}"
    message = f"{coverage.gaps} entities lack a valid vector, the first since {since}."
    message = " ".join([message, *_gap_advice(read)])
    if age <= timedelta(minutes=config.gap_minutes):
        return result_of(COVERAGE, message, metadata)
    is_worked_on = not is_idle(read.state, timedelta(minutes=config.patience_minutes))
    is_enough = coverage.percent >= config.coverage_target
    return result_of(COVERAGE, message, metadata, WARN if is_enough or is_worked_on else ERROR)


def _gap_advice(read: Embeddings) -> list[str]:
    remedies = remedies_for_gaps(
        read.coverage,
        queued=read.state.queued,
        parked=read.state.parked,
        stopped=not read.state.switch.is_running,
    )
    advice = [GAP_ADVICE[remedy].format(count=count) for remedy, count in remedies.items()]
    if Remedy.RUN in remedies and read.forecast.eta is not None:
        advice.append(f"At the present rate that takes {in_words(read.forecast.eta)}.")
    return advice


def is_idle(state: QueueState, patience: timedelta) -> bool:
    last_success = state.health.last_success_at
    return last_success is None or state.at - last_success > patience


def unreachable(check: Check, store: str, error: EmbedPipelineError) -> dg.AssetCheckResult:
    return result_of(check, f"CRITICAL ({store} unreachable): {error} {RECONNECT}", {}, ERROR)


def addressed(result: dg.AssetCheckResult, names: Names) -> dg.AssetCheckResult:
    """The result for the pipeline's own asset, with the pipeline's names in its sentence."""
    (check,) = (check for check in CHECKS if check.name == result.check_name)
    return result._replace(
        asset_key=names.asset(check.asset), description=names.in_text(result.description or "")
    )


def result_of(
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
