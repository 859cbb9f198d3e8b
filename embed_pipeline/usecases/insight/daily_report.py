"""The daily report: throughput per hour, latency percentiles, error patterns.

Jobs are read page by page and only sums are kept, so memory depends on the number of hours and
different errors, not of jobs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import pandas as pd  # type: ignore[import-untyped]

from embed_pipeline.domain.health import pattern_of
from embed_pipeline.domain.job import ENTITY_GONE, EmbedJob, FailureRecord, JobStatus
from embed_pipeline.errors import ErrorCategory
from embed_pipeline.ports.job_history import JobHistory

PAGE = 1_000
PERCENTILES = (50, 90, 95, 99, 100)
STEP = 1.05
"""Latencies are counted in steps of 5 %, so a percentile is exact to 5 %."""
SHORTEST = 0.001
MOST_PATTERNS, SHOWN_PATTERNS = 1_000, 20


@dataclass(slots=True, kw_only=True)
class DailyReport:
    """Grows page by page; `hours` has a row per hour, `steps` counts completed jobs by latency."""

    since: datetime
    hours: pd.DataFrame = field(
        default_factory=lambda: pd.DataFrame(columns=["completed", "failed"], dtype="int64")
    )
    steps: Counter[int] = field(default_factory=Counter)
    errors: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def completed(self) -> int:
        return int(self.hours["completed"].sum())

    @property
    def failed(self) -> int:
        return int(self.hours["failed"].sum())

    @property
    def ended(self) -> int:
        return self.completed + self.failed

    def add(self, jobs: Sequence[EmbedJob]) -> None:
        page = _frame(jobs)
        by_hour = page.groupby(["hour", "status"]).size().unstack(fill_value=0)
        by_hour = by_hour.reindex(columns=["completed", "failed"], fill_value=0)
        self.hours = self.hours.add(by_hour, fill_value=0).astype("int64")
        done = page.loc[page["status"] == "completed", "step"]
        self.steps.update(done.value_counts().to_dict())
        self.errors.update(_pattern(job) for job in jobs if job.status is JobStatus.FAILED)
        self.errors = Counter(dict(self.errors.most_common(MOST_PATTERNS)))

    def latency(self, percent: float) -> float | None:
        """Seconds from creation to completion; None if nothing was completed."""
        if not self.steps:
            return None
        counts = pd.Series(self.steps).sort_index().cumsum()
        step = int(counts.index[(counts >= math.ceil(counts.iloc[-1] * percent / 100)).argmax()])
        return float(SHORTEST * STEP**step)

    def figures(self) -> dict[str, int | float]:
        """Only numbers, so that they can be plotted over days."""
        figures: dict[str, int | float] = {"completed": self.completed, "failed": self.failed}
        for percent in PERCENTILES:
            latency = self.latency(percent)
            if latency is not None:
                figures[f"latency p{percent} (seconds)"] = round(latency, 3)
        return figures

    def tables(self) -> dict[str, str]:
        """Markdown tables by their titles."""
        return {
            "throughput per hour": self._throughput_table(),
            "latency": self._latency_table(),
            "error patterns": self._error_table(),
        }

    def _throughput_table(self) -> str:
        if self.hours.empty:
            return f"Nothing has ended since {self.since:%Y-%m-%d %H:%M} UTC."
        table = self.hours.sort_index()
        table["completed per minute"] = (table["completed"] / 60).round(1)
        table.index = table.index.strftime("%Y-%m-%d %H:00")
        return str(table.to_markdown(index=True))

    def _latency_table(self) -> str:
        if not self.steps:
            return "Nothing was completed."
        rows = [(f"p{percent}", _duration(self.latency(percent) or 0)) for percent in PERCENTILES]
        table = pd.DataFrame(rows, columns=["percentile", "from creation to completion"])
        return str(table.to_markdown(index=False))

    def _error_table(self) -> str:
        if not self.errors:
            return "No job has failed."
        rows = [
            (count, category, pattern.replace("|", "\\|"))
            for (category, pattern), count in self.errors.most_common(SHOWN_PATTERNS)
        ]
        table = pd.DataFrame(rows, columns=["jobs", "category", "error"])
        return str(table.to_markdown(index=False))


def report_since(history: JobHistory, *, since: datetime) -> DailyReport:
    """All jobs that ended since, completed or failed."""
    report = DailyReport(since=since)
    for page in _pages(history, since):
        report.add(page)
    return report


def _pages(history: JobHistory, since: datetime) -> Iterator[tuple[EmbedJob, ...]]:
    after: EmbedJob | None = None
    while page := history.ended(since=since, after=after, limit=PAGE):
        yield page
        after = page[-1]


def _frame(jobs: Sequence[EmbedJob]) -> pd.DataFrame:
    frame = pd.DataFrame(
        {
            "status": [job.status.value for job in jobs],
            "created": pd.to_datetime([job.created_at for job in jobs], utc=True),
            "ended": pd.to_datetime([job.processed_at for job in jobs], utc=True),
        }
    )
    waited = (frame["ended"] - frame["created"]).dt.total_seconds().clip(lower=SHORTEST)
    frame["hour"] = frame["ended"].dt.floor("h")
    # Rounded up: a latency is never reported shorter than it was.
    frame["step"] = waited.map(lambda seconds: math.ceil(math.log(seconds / SHORTEST, STEP)))
    return frame


def _pattern(job: EmbedJob) -> tuple[str, str]:
    if job.fail_code == ENTITY_GONE:
        return "PERMANENT", "the entity was deleted"
    failure = FailureRecord(
        category=job.error_category or ErrorCategory.TRANSIENT,
        error_type=job.error_type or "unknown",
        message=job.error or job.fail_reason or "",
    )
    return failure.category.value, pattern_of(failure)


def _duration(seconds: float) -> str:
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
