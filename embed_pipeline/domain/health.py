"""Health: what the last outcomes say, shared by all runs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, StrEnum, auto

from embed_pipeline.domain.breaker import Breaker
from embed_pipeline.domain.control import Switch, SwitchState
from embed_pipeline.domain.job import EmbedJob, FailureRecord, JobId

RECENT = 100
DEGRADED_AFTER = 5
TOP_PATTERNS = 5

_OK = ""
_VARYING = re.compile(r"\b[0-9a-f]{8,}\b|\d+", re.IGNORECASE)


class HealthStatus(StrEnum):
    HEALTHY = "HEALTHY"
    DEGRADED = "DEGRADED"
    CRITICAL = "CRITICAL"


class HealthChange(Enum):
    NONE = auto()
    DEGRADED = auto()
    RECOVERED = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthRecord:
    """What is stored: `recent` holds a pattern per failure and an empty string per success."""

    consecutive_failures: int = 0
    last_success_at: datetime | None = None
    recent: tuple[str, ...] = ()
    crash_loop: bool = False
    """Jobs run out of recoveries while no job completes: every run dies."""


def pattern_of(failure: FailureRecord) -> str:
    """The error without what differs from job to job, short enough to count."""
    message = _VARYING.sub("#", failure.message).strip()
    return f"{failure.error_type}: {message}"[:120] if message else failure.error_type


def after_success(
    record: HealthRecord, *, now: datetime, count: int
) -> tuple[HealthRecord, HealthChange]:
    """Successes reset the count; the recovery is reported even below the threshold."""
    had_trouble = record.consecutive_failures > 0 or record.crash_loop
    better = HealthRecord(
        last_success_at=now,
        recent=_latest(record.recent, [_OK] * min(count, RECENT)),
    )
    return better, HealthChange.RECOVERED if had_trouble else HealthChange.NONE


def after_failures(
    record: HealthRecord, failures: Iterable[FailureRecord]
) -> tuple[HealthRecord, HealthChange]:
    patterns = [pattern_of(failure) for failure in failures]
    count = record.consecutive_failures + len(patterns)
    worse = replace(record, consecutive_failures=count, recent=_latest(record.recent, patterns))
    crossed = record.consecutive_failures < DEGRADED_AFTER <= count
    return worse, HealthChange.DEGRADED if crossed else HealthChange.NONE


def _latest(recent: Sequence[str], new: Sequence[str]) -> tuple[str, ...]:
    return (*recent, *new)[-RECENT:]


MOST_SILENT = 1_000
"""Jobs without a heartbeat are counted up to this number."""
MOST_NAMED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """Processing jobs that had no heartbeat for too long, while their lease still holds."""

    count: int = 0
    job_ids: tuple[JobId, ...] = ()
    """The first of them."""
    workers: tuple[str, ...] = ()
    longest: timedelta = timedelta(0)


def silence_of(jobs: Sequence[EmbedJob], *, now: datetime) -> Silence:
    return Silence(
        count=len(jobs),
        job_ids=tuple(job.id for job in jobs[:MOST_NAMED]),
        workers=tuple(sorted({job.lock_owner for job in jobs if job.lock_owner})),
        longest=max(
            (now - job.last_heartbeat_at for job in jobs if job.last_heartbeat_at),
            default=timedelta(0),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthReport:
    """The answer to `get_health_status()`; `success_rate` is None while nothing has ended yet."""

    status: HealthStatus
    consecutive_failures: int
    success_rate: float | None
    last_success_at: datetime | None
    error_patterns: tuple[tuple[str, int], ...]
    reasons: tuple[str, ...]
    silent_jobs: int = 0
    silent_job_ids: tuple[JobId, ...] = ()
    recent: int = 0
    """How many of the latest outcomes `success_rate` is about: at most 100."""
    recent_failures: int = 0


def report(
    record: HealthRecord,
    *,
    switch: Switch,
    breakers: Sequence[Breaker],
    silence: Silence | None = None,
) -> HealthReport:
    silence = silence or Silence()
    failures = [pattern for pattern in record.recent if pattern != _OK]
    total = len(record.recent)
    status, reasons = _classify(record, switch, [b for b in breakers if b.is_open])
    return HealthReport(
        status=status,
        consecutive_failures=record.consecutive_failures,
        success_rate=(total - len(failures)) / total if total else None,
        last_success_at=record.last_success_at,
        error_patterns=tuple(Counter(failures).most_common(TOP_PATTERNS)),
        reasons=(*reasons, *_on_silence(silence)),
        silent_jobs=silence.count,
        silent_job_ids=silence.job_ids,
        recent=total,
        recent_failures=len(failures),
    )


def _on_silence(silence: Silence) -> list[str]:
    """A note: one worker that is gone says nothing about the others, and recovery follows."""
    if not silence.count:
        return []
    count = f"{MOST_SILENT:,} or more" if silence.count >= MOST_SILENT else f"{silence.count:,}"
    return [
        f"no heartbeat for {silence.longest.total_seconds():.0f} s of {count} processing jobs of"
        f" {', '.join(silence.workers[:3])}, which may be gone (job {silence.job_ids[0]})"
    ]


def _classify(
    record: HealthRecord, switch: Switch, open_breakers: Sequence[Breaker]
) -> tuple[HealthStatus, list[str]]:
    critical, degraded, notes = [], [], []
    if switch.state is SwitchState.HALTED:
        critical.append(f"halted: {switch.reason}")
    if switch.state is SwitchState.PAUSED:
        notes.append(f"paused: {switch.reason}")
    if record.crash_loop:
        critical.append("every run that takes jobs dies: check the latest deploy")
    if record.consecutive_failures >= DEGRADED_AFTER:
        degraded.append(f"{record.consecutive_failures} consecutive failures")
    degraded += [f"breaker of {b.name} is open: {b.reason}" for b in open_breakers]
    if critical:
        return HealthStatus.CRITICAL, critical + degraded + notes
    status = HealthStatus.DEGRADED if degraded else HealthStatus.HEALTHY
    return status, degraded + notes
