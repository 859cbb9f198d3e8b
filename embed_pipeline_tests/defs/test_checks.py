"""The asset checks: each failure has a reason and advice; what fixes itself passes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest

from embed_pipeline.defs.assets import Embeddings
from embed_pipeline.defs.observe.checks import (
    COVERAGE,
    CheckConfig,
    check_coverage,
    unreachable,
)
from embed_pipeline.defs.observe.queue_checks import (
    check_failed_jobs,
    check_health,
    check_stuck,
)
from embed_pipeline.domain.control import Switch, SwitchState
from embed_pipeline.domain.health import HealthReport, HealthStatus
from embed_pipeline.domain.job import EmbedJob, EntityUid, JobId, JobStatus, QueueStatus
from embed_pipeline.domain.partition import Coverage
from embed_pipeline.domain.recovery import RecoveryPolicy
from embed_pipeline.errors import ErrorCategory, StoreUnavailable
from embed_pipeline.usecases.insight.coverage import Progress, QueueState
from embed_pipeline.usecases.insight.forecast import Forecast

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)
CONFIG = CheckConfig()
HEALTHY = HealthReport(
    status=HealthStatus.HEALTHY,
    consecutive_failures=0,
    success_rate=1.0,
    last_success_at=NOW,
    error_patterns=(),
    reasons=(),
)
IDLE = QueueState(
    at=NOW,
    status=QueueStatus(),
    switch=Switch(),
    health=HEALTHY,
    oldest_wait=timedelta(0),
    has_stale=False,
    parked=0,
    failures=(),
    totals={},
)
FAILED_JOB = EmbedJob(
    id=JobId("j1"),
    entity_uid=EntityUid("e1"),
    model="mock/mock@64",
    version="1",
    status=JobStatus.FAILED,
    priority=5,
    created_at=NOW,
    available_at=NOW,
    processed_at=NOW,
    error="The text is refused.",
    error_category=ErrorCategory.PERMANENT,
)
HALTED = Switch(state=SwitchState.HALTED, reason="The key is refused")


def severity(result: dg.AssetCheckResult) -> str:
    return "green" if result.passed else result.severity.value


def read(
    coverage: Coverage,
    state: QueueState = IDLE,
    *,
    no_job_for: timedelta | None = None,
    eta: timedelta | None = None,
) -> Embeddings:
    return Embeddings(
        coverage=coverage,
        state=state,
        forecast=Forecast(left=coverage.missing, per_second=None, eta=eta),
        progress=Progress(completed=0, tokens=0, elapsed=timedelta(0)),
        model="mock/mock@64",
        no_job_since=None if no_job_for is None else NOW - no_job_for,
    )


QUEUED = replace(IDLE, status=QueueStatus(pending=8))
LATE = replace(QUEUED, oldest_wait=HOUR)
DEAD = replace(LATE, health=replace(HEALTHY, last_success_at=NOW - 2 * HOUR))


@pytest.mark.parametrize(
    ("given", "colour", "says"),
    [
        (read(Coverage()), "green", "no entities yet"),
        (read(Coverage(entities=10, embedded=10)), "green", "All 10 entities"),
        (read(Coverage(entities=10, embedded=2), QUEUED), "green", "8 entities lack a valid vec"),
        (
            read(Coverage(entities=10, embedded=2), no_job_for=14 * MINUTE),
            "green",
            "the first since 11:46:00 UTC, for 14 minutes. 8 of them have no job: discover_job",
        ),
        (read(Coverage(entities=100, embedded=99), no_job_for=HOUR), "WARN", "1 of them have no"),
        (read(Coverage(entities=10, embedded=2), LATE), "WARN", "since 11:00:00 UTC, for 60 min"),
        (
            read(Coverage(entities=10, embedded=2), LATE, eta=2 * HOUR),
            "WARN",
            "8 jobs are queued and will be processed. At the present rate that takes 2 hours.",
        ),
        (read(Coverage(entities=10, embedded=2), DEAD), "ERROR", "8 entities lack"),
        (read(Coverage(entities=100, embedded=99), DEAD), "WARN", "1 entities lack"),
    ],
)
def test_coverage_is_about_the_age_of_a_gap_and_not_about_a_moment(
    given: Embeddings, colour: str, says: str
) -> None:
    result = check_coverage(given, CONFIG)

    assert severity(result) == colour
    assert says in str(result.description)


@pytest.mark.parametrize(
    ("state", "says", "does_not_say"),
    [
        (replace(IDLE, parked=5), "5 jobs have failed: fix the cause", "discover_job"),
        (replace(IDLE, parked=2), "3 of them have no job: discover_job", "resume_job"),
        (
            replace(IDLE, status=QueueStatus(pending=4), switch=HALTED),
            "4 jobs are queued, but the queue is stopped: launch resume_job.",
            "will be processed",
        ),
    ],
)
def test_coverage_advises_only_what_closes_the_gap(
    state: QueueState, says: str, does_not_say: str
) -> None:
    """Discovery skips entities whose job has failed, so it does nothing for these."""
    result = check_coverage(read(Coverage(entities=100, embedded=95), state), CONFIG)

    assert str(result.description).startswith("5 entities lack a valid vector, the first since ")
    assert says in str(result.description)
    assert does_not_say not in str(result.description)


def test_target_is_the_callers() -> None:
    given = read(Coverage(entities=100, embedded=99), DEAD)

    assert severity(check_coverage(given, CheckConfig(coverage_target=99.5))) == "ERROR"
    assert severity(check_coverage(given, CheckConfig(gap_minutes=61))) == "green"


@pytest.mark.parametrize(
    ("state", "colour", "says"),
    [
        (IDLE, "green", "No due job waits longer"),
        (replace(IDLE, oldest_wait=HOUR), "green", "No due job waits longer"),
        (
            replace(
                IDLE, oldest_wait=HOUR, health=replace(HEALTHY, last_success_at=NOW - 2 * HOUR)
            ),
            "ERROR",
            "waited for 60 minutes and nothing was completed",
        ),
        (
            replace(IDLE, oldest_wait=HOUR, health=replace(HEALTHY, last_success_at=None)),
            "ERROR",
            "embed_queue_sensor",
        ),
        (
            replace(
                IDLE,
                oldest_wait=HOUR,
                switch=Switch(state=SwitchState.PAUSED, reason="maintenance"),
            ),
            "WARN",
            "the queue is paused: maintenance. Fix the cause, then launch resume_job.",
        ),
        (replace(IDLE, has_stale=True), "WARN", "recover_stale_job"),
    ],
)
def test_queue_is_stuck_when_due_jobs_wait_and_nothing_moves(
    state: QueueState, colour: str, says: str
) -> None:
    result = check_stuck(state, CONFIG)

    assert severity(result) == colour
    assert says in str(result.description)


@pytest.mark.parametrize(
    ("health", "switch", "colour", "says"),
    [
        (HEALTHY, Switch(), "green", "HEALTHY."),
        (
            replace(HEALTHY, recent=100, recent_failures=1, last_success_at=NOW - 12 * SECOND),
            Switch(),
            "green",
            "HEALTHY. 1 of the last 100 attempts failed; the last success was 12 s ago.",
        ),
        (
            replace(
                HEALTHY,
                status=HealthStatus.DEGRADED,
                reasons=("6 consecutive failures",),
                recent=6,
                recent_failures=6,
                last_success_at=None,
            ),
            Switch(),
            "WARN",
            "failures. 6 of the last 6 attempts failed; none has succeeded yet. The latest",
        ),
        (
            replace(HEALTHY, reasons=("paused: tonight",)),
            Switch(state=SwitchState.PAUSED, reason="tonight"),
            "green",
            "HEALTHY (paused: tonight).",
        ),
        (
            replace(HEALTHY, status=HealthStatus.DEGRADED, reasons=("6 consecutive failures",)),
            Switch(),
            "WARN",
            "DEGRADED: 6 consecutive failures. The latest failures show",
        ),
        (
            replace(HEALTHY, status=HealthStatus.CRITICAL, reasons=("halted: The key is refused",)),
            HALTED,
            "ERROR",
            "CRITICAL: halted: The key is refused. Fix the cause, then launch resume_job.",
        ),
        (
            replace(HEALTHY, status=HealthStatus.CRITICAL, reasons=("every run dies",)),
            Switch(),
            "ERROR",
            "CRITICAL: every run dies. Runs crash before they complete anything: check the latest "
            "failed runs of embed_job and the latest deployment.",
        ),
    ],
)
def test_health_says_why_and_what_to_do(
    health: HealthReport, switch: Switch, colour: str, says: str
) -> None:
    result = check_health(replace(IDLE, health=health, switch=switch))

    assert severity(result) == colour
    assert says in str(result.description)


def test_health_names_the_runs_that_died_and_asks_nobody_to_resume_a_running_queue() -> None:
    dying = replace(HEALTHY, status=HealthStatus.CRITICAL, reasons=("every run dies",))

    result = check_health(replace(IDLE, health=dying), failed_runs=["r4", "r3", "r2", "r1"])

    assert "the latest failed runs of embed_job (r4, r3, r2) and" in str(result.description)
    assert "resume_job" not in str(result.description)
    assert f"at its {RecoveryPolicy().last_resort}th recovery a job is marked failed" in str(
        result.description
    )


@pytest.mark.parametrize("database", ["queue", "graph"])
def test_unreachable_database_is_critical_and_says_what_to_do(database: str) -> None:
    result = unreachable(COVERAGE, database, StoreUnavailable("It does not answer."))

    assert severity(result) == "ERROR"
    assert str(result.description).startswith(
        f"CRITICAL ({database} unreachable): It does not answer. Bring the database back"
    )
    assert "embed-pipeline doctor" in str(result.description)


def test_failed_jobs_are_a_table_with_their_remedy() -> None:
    talkative = replace(FAILED_JOB, error="x" * 1_000)
    clean = check_failed_jobs(IDLE)
    result = check_failed_jobs(replace(IDLE, parked=1_500, failures=(FAILED_JOB, talkative)))

    table = result.metadata["latest failures"]
    assert isinstance(table, dg.TableMetadataValue)
    assert (severity(clean), severity(result)) == ("green", "WARN")
    assert "retry_failed_job" in str(result.description)
    assert str(result.description).startswith("1500 jobs have failed")
    assert table.records[0].data["error"] == "The text is refused."
    assert len(str(table.records[1].data["error"])) <= 201
