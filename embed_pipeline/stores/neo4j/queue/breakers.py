"""The breakers in the queue's database, one small document each."""

from __future__ import annotations

from embed_pipeline.domain.breaker import Breaker, closed, probe_claimed, probe_given_back, tripped
from embed_pipeline.domain.job import FailureRecord
from embed_pipeline.ports.queue_control import Breakers
from embed_pipeline.stores.neo4j.queue import health
from embed_pipeline.stores.neo4j.queue.backend import QueueDatabase, QueueTransaction
from embed_pipeline.stores.neo4j.queue.shared_state import lock_breaker, read_breaker, save_breaker


class Neo4jBreakers(Breakers):
    def __init__(self, queue: QueueDatabase) -> None:
        self._queue = queue

    def read(self, name: str) -> Breaker:
        return self._queue.read(lambda look: read_breaker(look, name))

    def trip(self, name: str, *, seen: int, error: FailureRecord) -> Breaker:
        def work(transaction: QueueTransaction) -> Breaker:
            before = lock_breaker(transaction, name)
            after = tripped(before, seen=seen, now=transaction.now, reason=error.message)
            if after is not before:
                save_breaker(transaction, after)
                health.note_failures(transaction, [error])
                transaction.record("breaker.opened", reason=error.message, breaker=name)
                transaction.announce(
                    "breaker.opened", breaker=name, reason=error.message, until=after.until
                )
            return after

        return self._queue.write(work)

    def claim_probe(self, name: str) -> Breaker | None:
        def work(transaction: QueueTransaction) -> Breaker | None:
            before = lock_breaker(transaction, name)
            claimed = probe_claimed(before, now=transaction.now)
            if claimed is not None:
                save_breaker(transaction, claimed)
            return claimed

        return self._queue.write(work)

    def give_back_probe(self, name: str, *, seen: int) -> Breaker:
        def work(transaction: QueueTransaction) -> Breaker:
            before = lock_breaker(transaction, name)
            after = probe_given_back(before, seen=seen, now=transaction.now)
            if after is not before:
                save_breaker(transaction, after)
            return after

        return self._queue.write(work)

    def close(self, name: str, *, seen: int) -> Breaker:
        def work(transaction: QueueTransaction) -> Breaker:
            before = lock_breaker(transaction, name)
            after = closed(before, seen=seen)
            if after is not before:
                save_breaker(transaction, after)
                transaction.record("breaker.closed", breaker=name)
                transaction.announce("breaker.closed", breaker=name)
            return after

        return self._queue.write(work)
