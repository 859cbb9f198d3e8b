"""What a batch, or a whole run, has done."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from embed_pipeline.domain.job import FailureRecord, JobId

_COUNTS = (
    "leased",
    "embedded",
    "reused",
    "superseded",
    "failed",
    "retried",
    "released",
    "deferred",
    "lost",
    "requests",
    "tokens",
    "truncated",
)

MOST_FAILURES = 100
"""How many failures are told one by one; all are counted, and kept in the queue."""


class Ending(StrEnum):
    """Why a run stopped leasing."""

    QUEUE_EMPTY = "the queue is empty"
    BUDGET_SPENT = "the budget is used up"
    TIME_UP = "its time was up"
    REFUSED = "the queue gives out no jobs"
    HALTED = "a critical error halted the queue"
    STOPPED = "it was told to stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedJob:
    job_id: JobId
    entity_name: str
    failure: FailureRecord
    final: bool


@dataclass(slots=True, kw_only=True)
class Tally:
    """Counts that grow while a run works; a mutable value, owned by one run."""

    leased: int = 0
    embedded: int = 0
    reused: int = 0
    superseded: int = 0
    failed: int = 0
    retried: int = 0
    released: int = 0
    deferred: int = 0
    lost: int = 0
    requests: int = 0
    tokens: int = 0
    truncated: int = 0
    seconds: float = 0.0
    failures: list[FailedJob] = field(default_factory=list)
    ending: Ending = Ending.QUEUE_EMPTY
    back_at: datetime | None = None
    """When leasing may work again, where that is known."""
    critical: str | None = None
    """The error for which this run halted the queue."""

    @property
    def completed(self) -> int:
        return self.embedded + self.reused + self.superseded

    @property
    def per_second(self) -> float | None:
        return self.completed / self.seconds if self.seconds > 0 else None

    def add(self, other: Tally) -> None:
        """Count what the other did; when and why it ended stays its own."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.critical = self.critical or other.critical
        self.failures += other.failures[: MOST_FAILURES - len(self.failures)]

    def plus(self, other: Tally) -> Tally:
        """Both together, one after the other: with the ending of the later one."""
        total = Tally(
            seconds=self.seconds + other.seconds,
            ending=other.ending,
            back_at=other.back_at,
        )
        total.add(self)
        total.add(other)
        return total

    def counters(self) -> dict[str, int]:
        """What the store's counters do not see by themselves."""
        return {
            "vectors_embedded": self.embedded,
            "vectors_reused": self.reused,
            "provider_requests": self.requests,
            "provider_tokens": self.tokens,
            "inputs_truncated": self.truncated,
        }

    def facts(self) -> dict[str, object]:
        facts: dict[str, object] = {name: getattr(self, name) for name in _COUNTS}
        rate = self.per_second
        return facts | {
            "seconds": round(self.seconds, 3),
            "per_second": None if rate is None else round(rate, 1),
        }
