"""Switch, breakers and health as documents: read and written inside anybody's transaction."""

from __future__ import annotations

from embed_pipeline.model.breaker import Breaker
from embed_pipeline.model.health import HealthRecord
from embed_pipeline.model.switch import Switch
from embed_pipeline.stores.sqlite import rows
from embed_pipeline.stores.sqlite.queue import QueueTransaction

_SWITCH, _HEALTH, _BREAKER = "switch", "health", "breaker:"


def read_switch(look: QueueTransaction) -> Switch:
    document = look.state(_SWITCH)
    return rows.switch_of(document) if document else Switch()


def save_switch(transaction: QueueTransaction, switch: Switch) -> None:
    transaction.set_state(_SWITCH, rows.switch_document(switch))


def read_breaker(look: QueueTransaction, name: str) -> Breaker:
    document = look.state(_BREAKER + name)
    return rows.breaker_of(document) if document else Breaker(name=name)


def all_breakers(look: QueueTransaction) -> list[Breaker]:
    return [rows.breaker_of(document) for document in look.states(_BREAKER)]


def save_breaker(transaction: QueueTransaction, breaker: Breaker) -> None:
    transaction.set_state(_BREAKER + breaker.name, rows.breaker_document(breaker))


def read_health(look: QueueTransaction) -> HealthRecord:
    document = look.state(_HEALTH)
    return rows.health_of(document) if document else HealthRecord()


def save_health(transaction: QueueTransaction, record: HealthRecord) -> None:
    transaction.set_state(_HEALTH, rows.health_document(record))
