"""What a backend fills so that the queue runs on it: transactions, shared documents, a ledger.

A backend is a `QueueDatabase` whose transactions are subclasses of `Reading` and `Transaction`,
and the statements of `job_table`.
What is not here is written once above it: when to lease, what a failure costs, who may send.

Rules for all backends:

- `work` may run more than once, so it changes nothing outside its transaction. What must be equal
  in every run (tokens, ids) is made outside. A commit that was sent is repeated only for verbs
  that such a token makes idempotent.
- `now` is the database's clock, read behind the last lock that was taken.
- Locks are taken in one order: lease lock, jobs by id, documents by name, counters, events.
- What a transaction leaves beside its jobs is written last, so that the documents and counters
  that all workers share are locked shortly.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypeVar

from embed_pipeline import telemetry
from embed_pipeline.domain.job import Event, JobId
from embed_pipeline.stores.encoding import Document
from embed_pipeline.stores.queue.job_table import JobReader, JobTable

T = TypeVar("T")

_encode = json.JSONEncoder(separators=(",", ":")).encode


class Reading(ABC):
    """A running transaction that only reads."""

    @property
    @abstractmethod
    def now(self) -> datetime:
        """The database's clock, to the microsecond."""

    @property
    @abstractmethod
    def jobs(self) -> JobReader: ...

    @abstractmethod
    def _load(self, names: Sequence[str] | None) -> Mapping[str, str]:
        """The stored documents of these names, as JSON; None: all of them, a handful."""

    @abstractmethod
    def events(self, *, limit: int, kind: str | None) -> list[Event]:
        """The latest first."""

    @abstractmethod
    def counters(self) -> dict[str, int]: ...

    def states(self, names: Sequence[str] | None = None) -> dict[str, Document]:
        """Several documents in one statement; None: all."""
        return {name: json.loads(value) for name, value in self._load(names).items()}

    def state(self, name: str) -> Document | None:
        return self.states([name]).get(name)


@dataclass(slots=True)
class Ledger:
    """What a transaction leaves beside its jobs."""

    states: dict[str, str] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    """Each with kind, owner, reason, job_ids and facts (as JSON)."""
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not (self.states or self.events or self.counts)

    @property
    def documents(self) -> list[tuple[str, str]]:
        """In the order in which every transaction locks them."""
        return sorted(self.states.items())

    @property
    def amounts(self) -> list[tuple[str, int]]:
        """What is added to the counters, in the same order."""
        return sorted(self.counts.items())


class Transaction(Reading):
    """A running transaction that may write."""

    def __init__(self) -> None:
        self._ledger = Ledger()
        self._locked: dict[str, str | None] = {}
        self._announcements: list[tuple[str, dict[str, object]]] = []

    @property
    @abstractmethod
    def jobs(self) -> JobTable: ...

    @abstractmethod
    def _lock(self, name: str) -> str | None:
        """Lock the document of this name, there or not, until the end; its JSON, if there is one.

        `now` is the time behind this lock from here on.
        """

    @abstractmethod
    def _write(self, ledger: Ledger) -> None: ...

    def states(self, names: Sequence[str] | None = None) -> dict[str, Document]:
        """With what this transaction itself has set."""
        own = self._ledger.states
        mine = own if names is None else {name: own[name] for name in names if name in own}
        return super().states(names) | {name: json.loads(value) for name, value in mine.items()}

    def lock_state(self, name: str) -> Document | None:
        """The document, which no other transaction changes until this one ends."""
        if name not in self._locked:
            self._locked[name] = self._lock(name)
        value = self._ledger.states.get(name, self._locked[name])
        return None if value is None else json.loads(value)

    def note_locked(self, name: str, value: str | None) -> None:
        """For the backend: a statement on jobs has locked and read this document by the way."""
        self._locked[name] = value

    def set_state(self, name: str, document: Mapping[str, object]) -> None:
        self._ledger.states[name] = _encode(document)

    def record(
        self,
        kind: str,
        *,
        owner: str | None = None,
        reason: str | None = None,
        job_ids: Sequence[JobId] = (),
        **facts: object,
    ) -> None:
        """Append the event of this call; it is committed with the change itself, or not at all."""
        self._ledger.events.append(
            {
                "kind": kind,
                "owner": owner,
                "reason": reason,
                "job_ids": list(job_ids),
                "facts": _encode(facts),
            }
        )

    def count(self, **amounts: int) -> None:
        counts = self._ledger.counts
        for name, amount in amounts.items():
            if amount:
                counts[name] = counts.get(name, 0) + amount

    def announce(self, event: str, **facts: object) -> None:
        """Log after the commit: what was rolled back never happened."""
        self._announcements.append((event, facts))

    def write_ledger(self) -> None:
        """For the backend, as the last thing before the commit."""
        if not self._ledger.is_empty:
            self._write(self._ledger)

    def emit_announcements(self) -> None:
        """For the backend, after the commit."""
        for event, facts in self._announcements:
            telemetry.emit(event, **facts)


class QueueDatabase(Protocol):
    """The database of a queue."""

    @abstractmethod
    def read(self, work: Callable[[Reading], T]) -> T: ...

    @abstractmethod
    def write(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` and commit; it may run more than once before that."""

    @abstractmethod
    def close(self) -> None:
        """The next use opens it again."""
