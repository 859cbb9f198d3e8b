"""The queue's Neo4j database, as the queue's engine uses it.

The driver runs a transaction's function again after a deadlock or a lost connection, but never
after a commit that was sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TypeVar

from neo4j.exceptions import ConstraintError

from embed_pipeline.domain.job import Event
from embed_pipeline.ports.clock import Clock
from embed_pipeline.stores.neo4j.driver.database import Neo4jDatabase, Row, Tx
from embed_pipeline.stores.neo4j.queue import rows
from embed_pipeline.stores.neo4j.queue.cypher import control as cypher
from embed_pipeline.stores.neo4j.queue.jobs import Neo4jJobs
from embed_pipeline.stores.neo4j.queue.reader import Neo4jJobReader
from embed_pipeline.stores.neo4j.queue.session import Session
from embed_pipeline.stores.queue.transaction import Ledger, QueueDatabase, Reading, Transaction

T = TypeVar("T")

CONFLICT_RETRIES = 20
"""How often a transaction is run again because others created the same keys meanwhile."""


class Neo4jReading(Reading):
    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session

    @property
    def now(self) -> datetime:
        return self.session.now

    @property
    def jobs(self) -> Neo4jJobReader:
        return Neo4jJobReader(self.session)

    def events(self, *, limit: int, kind: str | None) -> list[Event]:
        if kind is None:
            found = self.session.all(cypher.RECENT_EVENTS, limit=limit)
        else:
            found = self.session.all(cypher.RECENT_EVENTS_OF_KIND, limit=limit, kind=kind)
        return [rows.event_of(row["event"]) for row in found]

    def counters(self) -> dict[str, int]:
        return {row["name"]: row["value"] for row in self.session.all(cypher.READ_COUNTERS)}

    def _load(self, names: Sequence[str] | None) -> Mapping[str, str]:
        if names is None:
            found: list[Row] = self.session.timed(cypher.READ_ALL_STATES)["states"]
        else:
            found = self.session.timed(cypher.READ_STATES, names=names)["states"]
        return {row["name"]: row["value"] for row in found}


class Neo4jTransaction(Neo4jReading, Transaction):
    def __init__(self, session: Session, *, max_attempts: int) -> None:
        super().__init__(session)
        self._jobs = Neo4jJobs(session, self, max_attempts=max_attempts)

    @property
    def jobs(self) -> Neo4jJobs:
        return self._jobs

    def _lock(self, name: str) -> str | None:
        value: str | None = self.session.timed(cypher.LOCK_STATE, name=name)["value"]
        return value

    def _write(self, ledger: Ledger) -> None:
        self.session.all(
            cypher.WRITE_LEDGER,
            states=[{"name": name, "value": value} for name, value in ledger.documents],
            events=[{"place": n, "event": event} for n, event in enumerate(ledger.events)],
            counts=[{"name": name, "amount": amount} for name, amount in ledger.amounts],
        )


class Neo4jQueue(QueueDatabase):
    """`clock` is the one that the database was opened with: None for the server's own."""

    def __init__(
        self, database: Neo4jDatabase, *, clock: Clock | None = None, max_attempts: int = 3
    ) -> None:
        self.database = database
        self._clock = clock
        self._max_attempts = max_attempts
        """For jobs that another program wrote without such a limit."""

    def write(self, work: Callable[[Neo4jTransaction], T]) -> T:
        def attempt(tx: Tx) -> tuple[T, Neo4jTransaction]:
            session = Session(tx, self._clock)
            transaction = Neo4jTransaction(session, max_attempts=self._max_attempts)
            answer = work(transaction)
            transaction.write_ledger()
            return answer, transaction

        answer, transaction = self._retry_conflicts(attempt)
        transaction.emit_announcements()
        return answer

    def _retry_conflicts(self, attempt: Callable[[Tx], T]) -> T:
        """A key that another transaction created meanwhile is found by the next attempt."""
        for _ in range(CONFLICT_RETRIES):
            with suppress(ConstraintError):
                return self.database.write(attempt)
        return self.database.write(attempt)

    def read(self, work: Callable[[Neo4jReading], T]) -> T:
        return self.database.read(lambda tx: work(Neo4jReading(Session(tx, self._clock))))

    def adopt_page(self) -> bool:
        """Adopt jobs of another program; whether more may be left."""
        return self.write(lambda transaction: transaction.jobs.adoption.adopt_page())

    def complete_without_text(self) -> None:
        """Complete jobs that 0.1 failed because their entity had no text."""
        while self.write(lambda transaction: transaction.jobs.adoption.complete_without_text()):
            pass

    def close(self) -> None:
        self.database.close()
