"""The queue's health, with the jobs that no worker will take."""

from __future__ import annotations

from dataclasses import replace

from embed_pipeline.domain.health import HealthReport
from embed_pipeline.ports.job_store import JobStore

MOST_COUNTED = 10_000


def read_health(jobs: JobStore, *, model: str) -> HealthReport:
    """Untaken jobs are a note: they harm no others."""
    report = jobs.health.report()
    return replace(report, reasons=(*report.reasons, *untaken_jobs(jobs, model=model)))


def untaken_jobs(jobs: JobStore, *, model: str) -> list[str]:
    """A sentence for each kind of job that waits for no worker of these settings."""
    sentences = []
    if other := jobs.get_queue_status().other:
        sentences.append(
            f"{other:,} jobs have a status that is none of ours, so no worker takes them"
        )
    for waiting in jobs.pending_models():
        if waiting != model:
            count = jobs.count_live(model=waiting, limit=MOST_COUNTED).pending
            at_least = "at least " if count == MOST_COUNTED else ""
            sentences.append(
                f"{at_least}{count:,} jobs wait for a worker of {waiting}; the settings say {model}"
            )
    return sentences
