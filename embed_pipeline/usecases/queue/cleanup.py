"""Cleanup: delete ended jobs past retention."""

from __future__ import annotations

from datetime import timedelta

from embed_pipeline.domain.job import CleanupReport
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.telemetry import emit


def cleanup_ttl(jobs: JobStore, *, older_than: timedelta) -> CleanupReport:
    report = jobs.cleanup(older_than=older_than)
    emit(
        "jobs.cleaned_up",
        count=report.jobs,
        completed=report.completed,
        failed=report.failed,
        events=report.events,
    )
    return report
