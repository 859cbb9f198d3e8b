"""What all workers of a queue share beside the jobs, each value kept as one small JSON document."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

from embed_pipeline.domain.breaker import Breaker
from embed_pipeline.domain.health import HealthRecord
from embed_pipeline.domain.switch import Switch, SwitchState
from embed_pipeline.domain.window import Spent, Window
from embed_pipeline.stores.encoding import Document, from_us, ms_or_none, time_or_none, to_us
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


def _switch_document(switch: Switch) -> Document:
    return {
        "state": switch.state.value,
        "reason": switch.reason,
        "since": ms_or_none(switch.since),
        "generation": switch.generation,
    }


def _switch(document: Document) -> Switch:
    return Switch(
        state=SwitchState(document["state"]),
        reason=document["reason"],
        since=time_or_none(document["since"]),
        generation=document["generation"],
    )


def _breaker_document(breaker: Breaker) -> Document:
    return {
        "name": breaker.name,
        "generation": breaker.generation,
        "level": breaker.level,
        "until": ms_or_none(breaker.until),
        "reason": breaker.reason,
    }


def _breaker(document: Document) -> Breaker:
    return Breaker(
        name=document["name"],
        generation=document["generation"],
        level=document["level"],
        until=time_or_none(document["until"]),
        reason=document["reason"],
    )


def _health_document(health: HealthRecord) -> Document:
    return {
        "consecutive_failures": health.consecutive_failures,
        "last_success_at": ms_or_none(health.last_success_at),
        "recent": health.recent,
        "crash_loop": health.crash_loop,
    }


def _health(document: Document) -> HealthRecord:
    return HealthRecord(
        consecutive_failures=document["consecutive_failures"],
        last_success_at=time_or_none(document["last_success_at"]),
        recent=tuple(document["recent"]),
        crash_loop=document["crash_loop"],
    )


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


SWITCH = Shared("switch", Switch(), _switch_document, _switch)
HEALTH = Shared("health", HealthRecord(), _health_document, _health)


@lru_cache
def breaker_of(name: str) -> Shared[Breaker]:
    return Shared(BREAKERS + name, Breaker(name=name), _breaker_document, _breaker)


def all_breakers(documents: Mapping[str, Document]) -> list[Breaker]:
    found = [document for name, document in documents.items() if name.startswith(BREAKERS)]
    return sorted(map(_breaker, found), key=lambda breaker: breaker.name)


@lru_cache
def budget_of(provider: str) -> Shared[Window]:
    return Shared(f"budget:{provider}", Window(), _budget_document, _budget)
