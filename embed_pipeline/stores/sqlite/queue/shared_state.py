"""Switch, breakers and health as documents: read and written inside anybody's transaction."""

from __future__ import annotations

from embed_pipeline.domain.breaker import Breaker
from embed_pipeline.domain.health import HealthRecord
from embed_pipeline.domain.switch import Switch
from embed_pipeline.stores.encoding import (
    breaker_document,
    breaker_of,
    health_document,
    health_of,
    switch_document,
    switch_of,
)
from embed_pipeline.stores.sqlite.queue.backend import QueueTransaction

_SWITCH, _HEALTH, _BREAKER = "switch", "health", "breaker:"


def read_switch(look: QueueTransaction) -> Switch:
    document = look.state(_SWITCH)
    return switch_of(document) if document else Switch()


def save_switch(transaction: QueueTransaction, switch: Switch) -> None:
    transaction.set_state(_SWITCH, switch_document(switch))


def read_breaker(look: QueueTransaction, name: str) -> Breaker:
    document = look.state(_BREAKER + name)
    return breaker_of(document) if document else Breaker(name=name)


def all_breakers(look: QueueTransaction) -> list[Breaker]:
    return [breaker_of(document) for document in look.states(_BREAKER)]


def save_breaker(transaction: QueueTransaction, breaker: Breaker) -> None:
    transaction.set_state(_BREAKER + breaker.name, breaker_document(breaker))


def read_health(look: QueueTransaction) -> HealthRecord:
    document = look.state(_HEALTH)
    return health_of(document) if document else HealthRecord()


def save_health(transaction: QueueTransaction, record: HealthRecord) -> None:
    transaction.set_state(_HEALTH, health_document(record))
