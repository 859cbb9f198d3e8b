"""The queue's database as its stores use it: transactions that carry time, events and counts.

The driver runs a transaction's function again after a deadlock or a lost connection, so all of it
starts anew each time: what is to be written down is collected in the transaction itself, and what
must be the same in every try (tokens, ids) is made outside.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, TypeVar

from neo4j.exceptions import ConstraintError

from embed_pipeline import telemetry
from embed_pipeline.domain.job import JobId
from embed_pipeline.ports.clock import Clock
from embed_pipeline.stores.encoding import from_ms, to_ms, to_us
from embed_pipeline.stores.neo4j.driver.database import Neo4jDatabase, Row, Tx
from embed_pipeline.stores.neo4j.queue.cypher import control as cypher

T = TypeVar("T")

CONFLICT_RETRIES = 20
"""How often a transaction is run again because others created the same keys meanwhile."""


class QueueReading:
    """A running transaction; `$now` travels with every statement, null for the server's clock."""

    def __init__(self, tx: Tx, clock: Clock | None) -> None:
        self._tx = tx
        self.now_us = to_us(clock.now()) if clock else None

    def all(self, statement: str, /, **parameters: object) -> list[Row]:
        return self._tx.all(statement, **parameters)

    def one(self, statement: str, /, **parameters: object) -> Row:
        return self._tx.one(statement, **parameters)

    def state(self, name: str) -> dict[str, Any] | None:
        found = self.all(cypher.READ_STATES, names=[name])
        return json.loads(found[0]["value"]) if found else None

    def states(self, prefix: str) -> list[dict[str, Any]]:
        found = self.all(cypher.STATES_BY_PREFIX, prefix=prefix)
        return [json.loads(row["value"]) for row in found]


class QueueTransaction(QueueReading):
    """One that writes; what it records is written last, so that shared nodes are locked shortly."""

    def __init__(self, tx: Tx, clock: Clock | None) -> None:
        super().__init__(tx, clock)
        self._now_ms: int | None = None
        self._events: list[dict[str, object]] = []
        self._counts: Counter[str] = Counter()
        self._held: dict[str, str | None] = {}
        self._states: dict[str, str] = {}
        self._announcements: list[tuple[str, dict[str, object]]] = []

    def locked(self, statement: str, /, **parameters: object) -> Row:
        """Run a statement that locks, and take the time it read behind its locks as ours."""
        row = self.one(statement, **parameters)
        self._now_ms = row["now"]
        return row

    @property
    def now_ms(self) -> int:
        assert self._now_ms is not None, "the time is read behind a lock, and none was taken yet"
        return self._now_ms

    @property
    def now(self) -> datetime:
        return from_ms(self.now_ms)

    def in_ms(self, delay: timedelta) -> int:
        return to_ms(self.now + delay)

    def run_each(self, statement: str, changes: Sequence[Mapping[str, object]]) -> None:
        """Sorted by id, as everybody does; the rows are locked already."""
        if changes:
            self.all(statement, rows=changes, at=self.now_ms)

    def lock_state(self, name: str) -> dict[str, Any] | None:
        """What this transaction left there, else what others did, nobody changing it meanwhile."""
        if name not in self._held:
            self.hold_state(name, self.locked(cypher.LOCK_STATE, name=name)["value"])
        value = self._states.get(name, self._held[name])
        return None if value is None else json.loads(value)

    def hold_state(self, name: str, value: str | None) -> None:
        """Note what a statement read that has locked it already."""
        self._held[name] = value

    def set_state(self, name: str, document: Mapping[str, object]) -> None:
        self._states[name] = json.dumps(document)

    def record(
        self,
        kind: str,
        *,
        owner: str | None = None,
        reason: str | None = None,
        job_ids: Sequence[JobId] = (),
        **facts: object,
    ) -> None:
        """Append the event of this call; it stands or falls with the change itself."""
        event = {
            "kind": kind,
            "owner": owner,
            "reason": reason,
            "job_ids": list(job_ids),
            "facts": json.dumps(facts),
        }
        self._events.append({"place": len(self._events), "event": event})

    def count(self, **amounts: int) -> None:
        self._counts.update(amounts)

    def announce(self, event: str, **facts: object) -> None:
        """Log after the commit: what was rolled back never happened."""
        self._announcements.append((event, facts))

    def announce_all(self) -> None:
        for event, facts in self._announcements:
            telemetry.emit(event, **facts)

    def write_ledger(self) -> None:
        counts = [{"name": n, "amount": self._counts[n]} for n in sorted(+self._counts)]
        if self._states or self._events or counts:
            self.all(
                cypher.WRITE_LEDGER,
                states=[{"name": n, "value": self._states[n]} for n in sorted(self._states)],
                events=self._events,
                counts=counts,
            )


class QueueDatabase:
    """`clock` is the one that the database was opened with: None for the server's own."""

    def __init__(self, database: Neo4jDatabase, *, clock: Clock | None = None) -> None:
        self.database = database
        self._clock = clock

    def write(self, work: Callable[[QueueTransaction], T]) -> T:
        """Run `work` and commit; it may run more than once before that."""

        def attempt(tx: Tx) -> tuple[T, QueueTransaction]:
            transaction = QueueTransaction(tx, self._clock)
            answer = work(transaction)
            transaction.write_ledger()
            return answer, transaction

        answer, transaction = self._retry_conflicts(attempt)
        transaction.announce_all()
        return answer

    def _retry_conflicts(self, attempt: Callable[[Tx], T]) -> T:
        """A key that somebody else created meanwhile is found by the next try."""
        for _ in range(CONFLICT_RETRIES):
            with suppress(ConstraintError):
                return self.database.write(attempt)
        return self.database.write(attempt)

    def read(self, work: Callable[[QueueReading], T]) -> T:
        return self.database.read(lambda tx: work(QueueReading(tx, self._clock)))

    def run_alone(self, statement: str, /, **parameters: object) -> Row:
        """For what makes its own transactions; the only row."""
        (row,) = self.database.autocommit(statement, **parameters)
        return row

    def close(self) -> None:
        self.database.close()
