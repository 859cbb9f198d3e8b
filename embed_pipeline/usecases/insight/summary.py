"""One page: coverage, the latest work, health."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from embed_pipeline.domain.health import HealthReport
from embed_pipeline.domain.job import Event
from embed_pipeline.domain.partition import Coverage
from embed_pipeline.errors import RequestError
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.usecases.insight.coverage import quick_coverage
from embed_pipeline.worker.context import Services

LATEST = 1_000
"""Events that are read; a run writes a few per batch."""
PAUSE = timedelta(minutes=10)
"""Work before a longer pause than this is earlier work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Jobs completed, and the time from the first lease to the last completion."""

    completed: int = 0
    took: timedelta = timedelta(0)
    is_whole: bool = True
    """False if there were more events than are read."""

    def __str__(self) -> str:
        if not self.completed:
            return "nothing was left to do"
        seconds = max(self.took.total_seconds(), 0.001)
        rate = self.completed / seconds
        least = "" if self.is_whole else "at least "
        return f"{least}{self.completed:,} embedded in {seconds:.1f} s ({rate:,.0f} per second)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    coverage: Coverage
    work: Work
    health: HealthReport
    model: str

    def facts(self) -> dict[str, object]:
        percent = self.coverage.percent
        return {
            "entities": self.coverage.entities,
            "coverage": "no entities yet" if percent is None else f"{percent:.1f} %",
            "work": str(self.work),
            "health": self.health.status.value,
            "model": self.model,
        }


def summarize(services: Services, *, since: datetime | None = None) -> Summary:
    return Summary(
        coverage=quick_coverage(services),
        work=work_done(services.jobs, since=since),
        health=services.jobs.health.report(),
        model=services.model,
    )


def work_done(jobs: JobStore, *, since: datetime | None = None) -> Work:
    """Since a given time, otherwise the latest work of all workers, back to a longer pause."""
    latest = jobs.events.recent(kind="jobs.completed", limit=LATEST)
    if since is None:
        completions = _without_pause(latest)
    else:
        completions = [event for event in latest if event.at >= since]
    if not completions:
        return Work()
    done = {job_id for event in completions for job_id in event.job_ids}
    earliest = since or completions[-1].at - PAUSE
    leases = [
        event.at
        for event in jobs.events.recent(kind="jobs.leased", limit=LATEST)
        if event.at >= earliest and not done.isdisjoint(event.job_ids)
    ]
    return Work(
        completed=sum(len(event.job_ids) for event in completions),
        took=completions[0].at - min([*leases, completions[-1].at]),
        is_whole=len(completions) < LATEST,
    )


def _without_pause(latest: Sequence[Event]) -> list[Event]:
    """The events, latest first, until one that is much earlier than the one after it."""
    events = list(latest[:1])
    for earlier in latest[1:]:
        if events[-1].at - earlier.at > PAUSE:
            break
        events.append(earlier)
    return events


def read_queries(path: Path) -> tuple[str, ...]:
    """The queries of a JSON list of `{"query": …}`."""
    try:
        return tuple(str(item["query"]) for item in json.loads(path.read_text()))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise RequestError(f"{path} is not a JSON list of {{query}} objects: {error}.") from error
