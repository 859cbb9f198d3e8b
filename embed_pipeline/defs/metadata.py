"""What a person reads about an op in the Dagster UI."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import dagster as dg

from embed_pipeline.domain.job import CleanupReport, EmbedJob, JobId
from embed_pipeline.domain.lease import Lease
from embed_pipeline.domain.recovery import Recovery
from embed_pipeline.domain.switch import Switch
from embed_pipeline.ports.clock import SystemClock
from embed_pipeline.telemetry.facts import shortened
from embed_pipeline.usecases.entities.discover import DiscoveryReport
from embed_pipeline.usecases.insight.price import estimated_price
from embed_pipeline.worker.report import FailedJob, RunReport

MOST_ROWS = 50
"""A table in the UI is for reading; the rest is in the store."""

LONGEST_ERROR = 200

FIRST = ("embedded", "tokens", "per_second", "seconds", "failed", "leased", "requests")
"""What a run tells whatever it is, and first: the UI cuts a long list."""

Metadata = dict[str, Any]


class Stopwatch:
    """Runs from its making."""

    def __init__(self) -> None:
        self._begun = SystemClock().monotonic()

    def speed(self, count: int) -> Metadata:
        """How long it took, and how many of what was counted a second."""
        seconds = SystemClock().monotonic() - self._begun
        rate = round(count / seconds, 1) if seconds > 0 else 0.0
        return {"seconds": round(seconds, 3), "per_second": rate}


def recovery_metadata(recovery: Recovery) -> Metadata:
    metadata: Metadata = {
        "recovered": len(recovery.returned),
        "failed": len(recovery.failed),
    }
    if recovery.jobs:
        metadata["jobs"] = _table(
            [
                {
                    "job": job.id,
                    "entity": job.entity_uid,
                    "previous owner": job.previous_owner or "",
                    "recoveries": job.recoveries,
                    "fate": job.fate.value,
                }
                for job in recovery.jobs
            ]
        )
    return metadata


def lease_metadata(lease: Lease) -> Metadata:
    return {"state": _state_of(lease), "jobs": len(lease.jobs), "owner": lease.owner}


def _state_of(lease: Lease) -> str:
    if lease.refusal is not None:
        until = f" until {lease.refusal.until:%H:%M:%S} UTC" if lease.refusal.until else ""
        return f"{lease.refusal.reason}{until}: {lease.refusal.detail}"
    if not lease.jobs:
        return "nothing is due"
    return "probe" if lease.probe else "leased"


def tally_metadata(tally: RunReport, *, model: str) -> Metadata:
    facts = tally.facts()
    metadata: Metadata = {name: facts[name] for name in FIRST if facts[name] is not None}
    metadata |= {name: fact for name, fact in facts.items() if fact}
    price = estimated_price(model, tokens=tally.tokens)
    if price is not None:
        metadata["price (USD, estimated)"] = float(price)
    metadata["model"] = model
    metadata["ended because"] = tally.stop_reason.value
    if tally.back_at is not None:
        metadata["back at"] = tally.back_at.isoformat(timespec="seconds")
    if tally.failures:
        metadata["failures"] = _failures(tally.failures)
    return metadata


def cleanup_metadata(report: CleanupReport, older_than: timedelta) -> Metadata:
    return {
        "completed deleted": report.completed,
        "failed deleted": report.failed,
        "events deleted": report.events,
        "older than (days)": older_than / timedelta(days=1),
    }


def discovery_metadata(report: DiscoveryReport) -> Metadata:
    return {
        "examined": report.examined,
        "missing": report.missing,
        "changed": report.changed,
        "stale or of another model": report.invalid,
        "new jobs": report.new_jobs,
        "queued already": report.queued_already,
        "parked": report.parked,
    }


def switch_metadata(switch: Switch, *, before: Switch | None = None) -> Metadata:
    metadata: Metadata = {"state": switch.state.value}
    if switch.reason:
        metadata["reason"] = switch.reason
    if switch.since:
        metadata["since"] = switch.since.isoformat(timespec="seconds")
    if before is not None:
        metadata["state before"] = before.state.value
        if before.reason and not before.is_running:
            metadata["reason before"] = before.reason
    return metadata


def ids_metadata(job_ids: Sequence[JobId]) -> Metadata:
    return {"jobs": _table([{"job": job_id} for job_id in job_ids])} if job_ids else {}


def failed_jobs_metadata(jobs: Sequence[EmbedJob]) -> Metadata:
    """The latest first, as the store gives them."""
    return {
        "latest failures": _table(
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
    }


def _failures(failures: Sequence[FailedJob]) -> dg.TableMetadataValue:
    return _table(
        [
            {
                "entity": failed.entity_name,
                "category": failed.failure.category.value,
                "error": failed.failure.message,
                "outcome": "failed" if failed.final else "retry planned",
                "job": failed.job_id,
            }
            for failed in failures
        ]
    )


def _table(rows: Sequence[dict[str, str | int]]) -> dg.TableMetadataValue:
    return dg.MetadataValue.table([dg.TableRecord(row) for row in rows[:MOST_ROWS]])
