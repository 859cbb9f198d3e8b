"""The breakers in the queue's file, one small document each."""

from __future__ import annotations

from embed_pipeline.domain.breaker import Breaker, closed, probe_claimed, probe_given_back, tripped
from embed_pipeline.domain.job import FailureRecord
from embed_pipeline.ports.queue_control import Breakers
from embed_pipeline.stores.sqlite.queue import health
from embed_pipeline.stores.sqlite.queue.backend import QueueFile
from embed_pipeline.stores.sqlite.queue.shared_state import read_breaker, save_breaker


class SqliteBreakers(Breakers):
    def __init__(self, queue: QueueFile) -> None:
        self._queue = queue

    def read(self, name: str) -> Breaker:
        with self._queue.reading() as look:
            return read_breaker(look, name)

    def trip(self, name: str, *, seen: int, error: FailureRecord) -> Breaker:
        with self._queue.transaction() as transaction:
            before = read_breaker(transaction, name)
            after = tripped(before, seen=seen, now=transaction.now, reason=error.message)
            if after is not before:
                save_breaker(transaction, after)
                health.note_failures(transaction, [error])
                transaction.record("breaker.opened", reason=error.message, breaker=name)
                transaction.announce(
                    "breaker.opened", breaker=name, reason=error.message, until=after.until
                )
            return after

    def claim_probe(self, name: str) -> Breaker | None:
        with self._queue.transaction() as transaction:
            claimed = probe_claimed(read_breaker(transaction, name), now=transaction.now)
            if claimed is not None:
                save_breaker(transaction, claimed)
            return claimed

    def give_back_probe(self, name: str, *, seen: int) -> Breaker:
        with self._queue.transaction() as transaction:
            before = read_breaker(transaction, name)
            after = probe_given_back(before, seen=seen, now=transaction.now)
            if after is not before:
                save_breaker(transaction, after)
            return after

    def close(self, name: str, *, seen: int) -> Breaker:
        with self._queue.transaction() as transaction:
            before = read_breaker(transaction, name)
            after = closed(before, seen=seen)
            if after is not before:
                save_breaker(transaction, after)
                transaction.record("breaker.closed", breaker=name)
                transaction.announce("breaker.closed", breaker=name)
            return after
