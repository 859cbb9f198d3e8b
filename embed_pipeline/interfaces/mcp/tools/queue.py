"""Tools on the state: coverage and queue, health, retrying failed jobs."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime

from pydantic import Field

from embed_pipeline.domain.control import SwitchState
from embed_pipeline.errors import CriticalError, ErrorCategory, TransientError
from embed_pipeline.interfaces.mcp.remedies import advice_for_gaps
from embed_pipeline.interfaces.mcp.tool import AgentTool, Answer, Arguments, Limit
from embed_pipeline.telemetry import redact
from embed_pipeline.usecases.entities.force import MOST
from embed_pipeline.usecases.insight.coverage import read_coverage
from embed_pipeline.usecases.insight.health import read_health
from embed_pipeline.usecases.queue.control import retry_failed
from embed_pipeline.usecases.queue.readiness import check_readiness
from embed_pipeline.worker.context import Services

UNREACHABLE = "CRITICAL (queue unreachable)"


class StatusAnswer(Answer):
    model: str
    """The embedding model: provider/name@dimensions."""
    entities: int
    """Valid entities in the graph."""
    embedded: int
    """Entities with a vector of this model; also those whose text changed since."""
    missing: int
    """Entities without a vector."""
    stale: int
    """Entities whose vector was made from an older text."""
    wrong_model: int
    """Entities whose vector is of another model."""
    wrong_dimension: int
    """Entities whose vector has another length."""
    invalid: int
    """Entities whose vector is zero or not finite, in a sample."""
    nothing_to_embed: int
    """Entities without text: they need no vector."""
    unseen: int
    """Nodes without a usable key, which nothing can name. They are among the excluded."""
    collections: dict[str, dict[str, int]]
    """By the name of a collection: its entities, embedded, missing and others."""
    excluded: int
    """Nodes that are no valid entities: deleted, or without a usable key."""
    audited_at: datetime | None
    """When the last complete audit ended, which found stale, wrong and invalid vectors."""
    pending: int
    """Jobs that wait."""
    processing: int
    """Jobs that a worker holds."""
    completed: int
    """Jobs that completed and are not cleaned up yet."""
    failed: int
    """Jobs that failed and are not cleaned up yet."""
    other: int
    """Jobs in another status, which another program has written; no worker takes them."""
    queue: SwitchState
    """Whether workers may take jobs."""
    idle_because: str | None
    """Why no worker would lease a job now; null if one would."""
    remedies: list[str]
    """What to do about each gap."""


def _status(services: Services, given: Arguments) -> StatusAnswer:
    report = read_coverage(services)
    coverage, queue = report.coverage, report.queue
    readiness = check_readiness(services.jobs, services.limiter, model=services.model)
    counts = asdict(coverage)
    counts.pop("audit")
    counts["collections"] = {name: one.shown() for name, one in coverage.collections.items()}
    percent = "no entities" if coverage.percent is None else f"{coverage.percent:.1f} %"
    return StatusAnswer(
        message=(
            f"{coverage.embedded} of {coverage.embeddable} entities with text have a vector "
            f"({percent}). Jobs: {report.queued} queued, "
            f"{queue.failed} failed."
        ),
        model=services.model,
        **counts,
        audited_at=coverage.audit.at if coverage.audit else None,
        **asdict(queue),
        queue=report.switch.state,
        idle_because=readiness.reason,
        remedies=advice_for_gaps(report.remedies),
    )


STATUS = AgentTool(
    name="embedding_status",
    title="Status of the embeddings",
    description=(
        "Counts: how many entities have a vector, what the others lack, how many jobs wait, run or "
        "failed, whether workers may lease jobs, and what closes each gap. Stale and wrong vectors "
        "are those of the last audit."
    ),
    arguments=Arguments,
    answer=StatusAnswer,
    run=_status,
)


class HealthAnswer(Answer):
    status: str
    """HEALTHY, DEGRADED, CRITICAL, or CRITICAL (queue unreachable)."""
    consecutive_failures: int = 0
    """Failures since the last success."""
    success_rate: float | None = None
    """Of the last 100 outcomes, from 0 to 1; null without any."""
    last_success_at: datetime | None = None
    """When a job last completed; null if none ever did."""
    error_patterns: dict[str, int] = Field(default_factory=dict)
    """The most frequent errors among the last 100 outcomes, with their counts."""
    reasons: list[str] = Field(default_factory=list)
    """Why it is not HEALTHY, and other warnings."""
    silent_jobs: int = 0
    """Processing jobs without a heartbeat for so long that their worker may be gone."""
    silent_job_ids: list[str] = Field(default_factory=list)
    """The first of them."""


def _health(services: Services, given: Arguments) -> HealthAnswer:
    try:
        report = read_health(services.jobs, model=services.model)
    except (TransientError, CriticalError) as error:
        # A monitor needs an answer also when the queue is down.
        reason = redact(str(error))
        return HealthAnswer(
            message=f"{UNREACHABLE}: {reason}", status=UNREACHABLE, reasons=[reason]
        )
    return HealthAnswer(
        message="; ".join([report.status.value, *report.reasons]) + ".",
        status=report.status.value,
        consecutive_failures=report.consecutive_failures,
        success_rate=report.success_rate,
        last_success_at=report.last_success_at,
        error_patterns=dict(report.error_patterns),
        reasons=list(report.reasons),
        silent_jobs=report.silent_jobs,
        silent_job_ids=list(report.silent_job_ids),
    )


HEALTH = AgentTool(
    name="get_health_status",
    title="Health of the pipeline",
    description=(
        "HEALTHY, DEGRADED or CRITICAL, with the reasons, consecutive failures, success rate of "
        "the last 100 outcomes, last success and the most frequent errors. Shared by all workers, "
        "and cheap."
    ),
    arguments=Arguments,
    answer=HealthAnswer,
    run=_health,
)


class RetryArguments(Arguments):
    category: ErrorCategory | None = None
    """Only failures of this category; all if left out."""
    limit: Limit = MOST
    """Retry at most this many, the oldest first; at most 1000."""


class RetryAnswer(Answer):
    retried: int
    """Jobs that are pending again."""
    still_failed: int
    """Jobs that stay failed."""


def _retry(services: Services, given: RetryArguments) -> RetryAnswer:
    retried = retry_failed(services.jobs, category=given.category, limit=min(given.limit, MOST))
    failed = services.jobs.get_queue_status().failed
    message = f"Pending again: {len(retried)}; still failed: {failed}."
    if given.limit > MOST:
        message += f" The limit was capped at {MOST}."
    return RetryAnswer(message=message, retried=len(retried), still_failed=failed)


RETRY = AgentTool(
    name="retry_failed_jobs",
    title="Retry failed jobs",
    description=(
        "Return failed jobs to pending, with all their attempts. Fix the cause first (see "
        "`get_health_status`), or they fail again."
    ),
    arguments=RetryArguments,
    answer=RetryAnswer,
    run=_retry,
    changes=True,
)
