"""Read the queue's jobs, a page at a time; nothing here changes anything.

A page continues behind the last job of the page before, so jobs that come and go meanwhile
neither repeat nor hide others.
"""

from __future__ import annotations

from abc import abstractmethod
from datetime import datetime
from typing import Protocol

from embed_pipeline.domain.job import EmbedJob, EntityUid, JobId, JobStatus

PAGE = 1_000


class JobHistory(Protocol):
    @abstractmethod
    def ended(
        self,
        *,
        since: datetime | None = None,
        status: JobStatus | None = None,
        after: EmbedJob | None = None,
        limit: int = PAGE,
    ) -> tuple[EmbedJob, ...]:
        """Completed and failed jobs, or one kind of them, by the time of their end, then by id.

        Those that ended at `since` or later, otherwise all. A job without a time of its end, as
        another program may leave it, is in no page. Costs as much as it returns.
        """

    @abstractmethod
    def parked(self, *, limit: int = PAGE) -> tuple[EmbedJob, ...]:
        """Failed jobs that only a person revives, the latest first.

        Those of deleted entities are not among them.
        """

    @abstractmethod
    def count_parked(self, *, limit: int | None = None) -> int:
        """All of them, or up to the limit; reads as many failed jobs."""

    @abstractmethod
    def walk(self, *, after: JobId | None = None, limit: int = PAGE) -> tuple[EmbedJob, ...]:
        """All jobs, by id."""

    @abstractmethod
    def ahead_of(self, job: EmbedJob, *, limit: int = PAGE) -> int:
        """How many pending jobs may be leased before this one, counted up to the limit.

        At most: those that are due in the same millisecond may go before or behind it.
        """

    @abstractmethod
    def of_entity(self, uid: EntityUid, *, limit: int = PAGE) -> tuple[EmbedJob, ...]:
        """All jobs of one entity, the newest first: one for each text and model it ever had."""
