"""What a soak saw, and whether all is well with it."""

from __future__ import annotations

from dataclasses import dataclass

MOST_GROWTH = 1.15
"""Between half-time and end; what a retention of a day leaves differs with the hour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    ticks: int
    day: float
    storage_mb: float
    files: int
    ticks_stored: int
    run_events: int
    """Rows of Dagster's event log."""
    queue_mb: float
    queue_events: int
    rss_mb: float

    def __str__(self) -> str:
        return (
            f"{self.ticks:>8} {self.day:>6.1f} {self.storage_mb:>12.1f} {self.files:>6}"
            f" {self.ticks_stored:>6} {self.run_events:>11}"
            f" {self.queue_mb:>9.2f} {self.queue_events:>13} {self.rss_mb:>7.0f}"
        )


HEAD = "   ticks    day storage (MB)  files stored  run events  queue MB  queue events  RSS MB"
MEASURED = {
    "storage_mb",
    "files",
    "ticks_stored",
    "run_events",
    "queue_mb",
    "queue_events",
    "rss_mb",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    samples: list[Sample]
    failed_ticks: int
    embed_runs: int
    entities: int
    embedded: int


def problems_in(outcome: Outcome) -> list[str]:
    """What went wrong, and what still grew after half-time; nothing, if all is well."""
    half, end = outcome.samples[len(outcome.samples) // 2 - 1], outcome.samples[-1]
    problems = []
    if not end.ticks_stored:
        problems.append("no tick was stored")
    if outcome.failed_ticks:
        problems.append(f"{outcome.failed_ticks} ticks failed")
    if not outcome.embed_runs:
        problems.append("no embed run was launched")
    if not outcome.embedded or outcome.embedded != outcome.entities:
        problems.append(f"{outcome.embedded} of {outcome.entities} entities are embedded")
    for name in sorted(MEASURED):
        before, after = getattr(half, name), getattr(end, name)
        if after > before * MOST_GROWTH:
            problems.append(f"{name} grew from {before:g} to {after:g} after half-time")
    return problems
