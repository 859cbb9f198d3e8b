"""Health in the queue's file: updated inside the transitions that it is about."""

from __future__ import annotations

from collections.abc import Iterable

from embed_pipeline.domain.health import HealthReport, report
from embed_pipeline.domain.job import FailureRecord
from embed_pipeline.ports.queue_control import Health
from embed_pipeline.stores.queue import health_notes
from embed_pipeline.stores.sqlite.queue.backend import QueueFile, QueueTransaction
from embed_pipeline.stores.sqlite.queue.shared_state import (
    all_breakers,
    read_health,
    read_switch,
    save_health,
)


class SqliteHealth(Health):
    def __init__(self, queue: QueueFile) -> None:
        self._queue = queue

    def report(self) -> HealthReport:
        with self._queue.reading() as look:
            return report(read_health(look), switch=read_switch(look), breakers=all_breakers(look))


def note_success(transaction: QueueTransaction, *, count: int) -> None:
    before = read_health(transaction)
    save_health(transaction, health_notes.succeeded(transaction, before, count=count))


def note_failures(transaction: QueueTransaction, failures: Iterable[FailureRecord]) -> None:
    before = read_health(transaction)
    save_health(transaction, health_notes.failed(transaction, before, failures))


def note_crash_loop(transaction: QueueTransaction) -> None:
    before = read_health(transaction)
    save_health(transaction, health_notes.crash_looped(transaction, before))
