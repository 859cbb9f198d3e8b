"""The audit: compares every entity with its labels, sets them right and marks what has changed.

It finds what other programs did without telling: texts, vectors or labels that they changed. A
pass over the whole graph may take many rounds, each of which continues where the last one stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from embed_pipeline.domain.partition import AuditCounts, AuditPass, AuditRecord
from embed_pipeline.telemetry import emit
from embed_pipeline.usecases.queue.exclusive import exclusively
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.leasing import ensure_model
from embed_pipeline.worker.stop import Deadline

TASK = "audit"
PAGE = 5_000
SAMPLE = 10
"""Vectors of each page whose numbers are read and checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """One round; `counts` are its own, `record` has the whole passes."""

    counts: AuditCounts
    record: AuditRecord
    complete: bool = False
    """Whether the round came to the end of the graph."""
    busy: str | None = None
    """Who audits already, so that this round did nothing."""


def audit(
    services: Services,
    *,
    deadline: Deadline | None = None,
    most_read: int | None = None,
    owner: str | None = None,
    on_page: Callable[[AuditPass], None] = lambda current: None,
) -> AuditReport:
    """To the end of the graph, or until the deadline or the bound. Every page is kept."""
    ensure_model(services)
    with exclusively(services, TASK, owner=owner) as lease:
        record = services.graph.audit_record(model=services.model)
        round_ = _Round(services, record or AuditRecord(model=services.model))
        if not lease.is_held:
            return AuditReport(counts=AuditCounts(), record=round_.record, busy=lease.holder)
        while not round_.is_complete and lease.keep():
            if (deadline and not deadline.state.is_running) or most_read == 0:
                break
            size = PAGE if most_read is None else min(PAGE, most_read)
            round_.read_page(size)
            most_read = None if most_read is None else most_read - size
            on_page(round_.current)
    report = AuditReport(counts=round_.counts, record=round_.record, complete=round_.is_complete)
    emit(
        "entities.audited",
        count=report.counts.examined,
        repaired=report.counts.repaired,
        marked=report.counts.marked,
        complete=report.complete,
    )
    return report


class _Round:
    def __init__(self, services: Services, record: AuditRecord) -> None:
        self._services, self.record = services, record
        self.current = record.current or AuditPass(started_at=services.clock.now())
        self.counts = AuditCounts()
        self.is_complete = False

    def read_page(self, size: int) -> None:
        """Read and repair the next page, and keep where it ended."""
        page = self._services.graph.audit_page(
            model=self._services.model, after=self.current.after, size=size, sample=SAMPLE
        )
        self.counts += page
        self.is_complete = page.next_after is None
        self.current = replace(
            self.current,
            counts=self.current.counts + page,
            after=page.next_after,
            ended_at=self._services.clock.now() if self.is_complete else None,
        )
        if self.is_complete:
            self.record = replace(self.record, last=self.current, current=None)
        else:
            self.record = replace(self.record, current=self.current)
        self._services.graph.save_audit(self.record)
