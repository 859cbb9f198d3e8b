"""Named leases: one owner at a time does a task that has no jobs, such as discovery."""

from __future__ import annotations

from datetime import timedelta

from embed_pipeline.domain.lease import NamedLease
from embed_pipeline.ports import queue_control as ports
from embed_pipeline.stores.queue.documents import lease_of
from embed_pipeline.stores.queue.transaction import QueueDatabase, Transaction


class NamedLeases(ports.NamedLeases):
    """Each is a document, whose lock decides between two that ask at once."""

    def __init__(self, database: QueueDatabase) -> None:
        self._database = database

    def take(self, name: str, *, owner: str, duration: timedelta) -> NamedLease:
        def work(transaction: Transaction) -> NamedLease:
            found, now = lease_of(name).lock(transaction), transaction.now
            if found.owner != owner and not found.is_free(now):
                return found
            taken = NamedLease(owner=owner, until=now + duration)
            lease_of(name).save(transaction, taken)
            return taken

        return self._database.write(work)

    def release(self, name: str, *, owner: str) -> bool:
        def work(transaction: Transaction) -> bool:
            if lease_of(name).lock(transaction).owner != owner:
                return False
            lease_of(name).save(transaction, NamedLease())
            return True

        return self._database.write(work)
