"""What all workers of a queue share beside the jobs, each value kept as one small JSON document."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Generic, TypeVar

from embed_pipeline.domain.breaker import Breaker
from embed_pipeline.domain.control import Switch, SwitchState
from embed_pipeline.domain.health import HealthRecord
from embed_pipeline.domain.lease import NamedLease
from embed_pipeline.domain.window import Spent, Window
from embed_pipeline.stores.encoding import Document, from_us, plain, time_or_none, to_us
from embed_pipeline.stores.queue.transaction import Reading, Transaction

T = TypeVar("T")

BREAKERS = "breaker:"
"""What the names of all breakers' documents begin with."""


@dataclass(frozen=True, slots=True)
class Shared(Generic[T]):
    """A value under a name: read by anyone, changed only under its lock."""

    name: str
    default: T
    encode: Callable[[T], Document]
    decode: Callable[[Document], T]

    def read(self, reading: Reading) -> T:
        return self._value(reading.state(self.name))

    def pick(self, documents: Mapping[str, Document]) -> T:
        """From documents that were read together."""
        return self._value(documents.get(self.name))

    def lock(self, transaction: Transaction) -> T:
        return self._value(transaction.lock_state(self.name))

    def save(self, transaction: Transaction, value: T) -> None:
        transaction.set_state(self.name, self.encode(value))

    def _value(self, document: Document | None) -> T:
        return self.default if document is None else self.decode(document)


def _encode(value: Switch | Breaker | HealthRecord | NamedLease) -> Document:
    return {part.name: plain(getattr(value, part.name)) for part in fields(value)}


def _switch(document: Document) -> Switch:
    state, since = SwitchState(document["state"]), time_or_none(document["since"])
    return Switch(**{**document, "state": state, "since": since})


def _breaker(document: Document) -> Breaker:
    return Breaker(**{**document, "until": time_or_none(document["until"])})


def _health(document: Document) -> HealthRecord:
    last_success_at, recent = time_or_none(document["last_success_at"]), tuple(document["recent"])
    return HealthRecord(**{**document, "last_success_at": last_success_at, "recent": recent})


def _named_lease(document: Document) -> NamedLease:
    return NamedLease(owner=document["owner"], until=time_or_none(document["until"]))


def _budget_document(window: Window) -> Document:
    """Times in microseconds: buckets of a short interval are finer than milliseconds."""
    paused_until = window.paused_until
    return {
        "buckets": [[to_us(at), s.requests, s.tokens] for at, s in window.buckets.items()],
        "grants": [[to_us(at), ids] for at, ids in window.grants.items() if ids],
        "paused_until": None if paused_until is None else to_us(paused_until),
    }


def _budget(document: Document) -> Window:
    paused_until = document["paused_until"]
    return Window(
        buckets={from_us(at): Spent(n, tokens) for at, n, tokens in document["buckets"]},
        grants={from_us(at): ids for at, ids in document["grants"]},
        paused_until=None if paused_until is None else from_us(paused_until),
    )


SWITCH = Shared("switch", Switch(), _encode, _switch)
HEALTH = Shared("health", HealthRecord(), _encode, _health)


@lru_cache
def breaker_of(name: str) -> Shared[Breaker]:
    return Shared(BREAKERS + name, Breaker(name=name), _encode, _breaker)


def all_breakers(documents: Mapping[str, Document]) -> list[Breaker]:
    found = [document for name, document in documents.items() if name.startswith(BREAKERS)]
    return sorted(map(_breaker, found), key=lambda breaker: breaker.name)


@lru_cache
def budget_of(provider: str) -> Shared[Window]:
    return Shared(f"budget:{provider}", Window(), _budget_document, _budget)


@lru_cache
def lease_of(name: str) -> Shared[NamedLease]:
    return Shared(f"lease:{name}", NamedLease(), _encode, _named_lease)
