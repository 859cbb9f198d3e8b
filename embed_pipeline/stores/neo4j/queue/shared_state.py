"""Switch, breakers and health as documents: read by anybody, changed only under their lock."""

from __future__ import annotations

import json
from collections.abc import Iterable

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
from embed_pipeline.stores.neo4j.driver.database import Row
from embed_pipeline.stores.neo4j.queue.backend import QueueReading, QueueTransaction

SWITCH, HEALTH, _BREAKER = "switch", "health", "breaker:"


def breaker_name(name: str) -> str:
    return _BREAKER + name


class Documents:
    """Several documents read at once, as nobody holds them."""

    def __init__(self, found: Iterable[Row]) -> None:
        self._found = {row["name"]: json.loads(row["value"]) for row in found}

    def switch(self) -> Switch:
        document = self._found.get(SWITCH)
        return switch_of(document) if document else Switch()

    def breaker(self, name: str) -> Breaker:
        document = self._found.get(breaker_name(name))
        return breaker_of(document) if document else Breaker(name=name)


def read_switch(look: QueueReading) -> Switch:
    document = look.state(SWITCH)
    return switch_of(document) if document else Switch()


def lock_switch(transaction: QueueTransaction) -> Switch:
    document = transaction.lock_state(SWITCH)
    return switch_of(document) if document else Switch()


def save_switch(transaction: QueueTransaction, switch: Switch) -> None:
    transaction.set_state(SWITCH, switch_document(switch))


def read_breaker(look: QueueReading, name: str) -> Breaker:
    document = look.state(breaker_name(name))
    return breaker_of(document) if document else Breaker(name=name)


def all_breakers(look: QueueReading) -> list[Breaker]:
    return [breaker_of(document) for document in look.states(_BREAKER)]


def lock_breaker(transaction: QueueTransaction, name: str) -> Breaker:
    document = transaction.lock_state(breaker_name(name))
    return breaker_of(document) if document else Breaker(name=name)


def save_breaker(transaction: QueueTransaction, breaker: Breaker) -> None:
    transaction.set_state(breaker_name(breaker.name), breaker_document(breaker))


def read_health(look: QueueReading) -> HealthRecord:
    document = look.state(HEALTH)
    return health_of(document) if document else HealthRecord()


def lock_health(transaction: QueueTransaction) -> HealthRecord:
    document = transaction.lock_state(HEALTH)
    return health_of(document) if document else HealthRecord()


def save_health(transaction: QueueTransaction, record: HealthRecord) -> None:
    transaction.set_state(HEALTH, health_document(record))
