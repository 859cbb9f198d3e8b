"""Switch, breakers and health: what all workers of a queue share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Protocol

from embed_pipeline.domain.breaker import (
    GRAPH,
    Breaker,
    closed,
    probe_claimed,
    probe_given_back,
    tripped,
)
from embed_pipeline.domain.control import ControlState, Switch, SwitchState
from embed_pipeline.domain.health import (
    MOST_NAMED,
    HealthChange,
    HealthReport,
    Silence,
    after_failures,
    after_success,
    report,
    silence_of,
)
from embed_pipeline.domain.job import FailureRecord, JobId
from embed_pipeline.domain.lease import silent_after
from embed_pipeline.domain.recovery import QueuePolicy
from embed_pipeline.ports import queue_control as ports
from embed_pipeline.stores.encoding import Document
from embed_pipeline.stores.queue.documents import HEALTH, SWITCH, all_breakers, breaker_of
from embed_pipeline.stores.queue.transaction import QueueDatabase, Reading, Transaction


def control_names(provider: str) -> list[str]:
    """The documents that `control_state` needs."""
    return [SWITCH.name, breaker_of(provider).name, breaker_of(GRAPH).name]


def control_state(
    documents: Mapping[str, Document], *, provider: str, now: datetime
) -> ControlState:
    return ControlState(
        now=now,
        switch=SWITCH.pick(documents),
        provider=breaker_of(provider).pick(documents),
        graph=breaker_of(GRAPH).pick(documents),
    )


def read_control(reading: Reading, *, provider: str) -> ControlState:
    documents = reading.states(control_names(provider))
    return control_state(documents, provider=provider, now=reading.now)


_SWITCHED = {
    SwitchState.PAUSED: "queue.paused",
    SwitchState.HALTED: "queue.halted",
    SwitchState.RUNNING: "queue.resumed",
}


class SwitchBoard(ports.SwitchBoard):
    def __init__(self, database: QueueDatabase) -> None:
        self._database = database

    def read(self) -> Switch:
        return self._database.read(SWITCH.read)

    def pause(self, reason: str) -> Switch:
        return self._turn(SwitchState.PAUSED, reason, unless=lambda switch: not switch.is_running)

    def halt(
        self, reason: str, *, seen: int, owner: str | None = None, job_ids: Sequence[JobId] = ()
    ) -> Switch:
        def is_old_news(switch: Switch) -> bool:
            return switch.state is SwitchState.HALTED or switch.generation != seen

        return self._turn(
            SwitchState.HALTED, reason, unless=is_old_news, owner=owner, job_ids=job_ids
        )

    def resume(self, reason: str) -> Switch:
        return self._turn(SwitchState.RUNNING, reason, unless=lambda switch: switch.is_running)

    def _turn(
        self,
        state: SwitchState,
        reason: str,
        *,
        unless: Callable[[Switch], bool],
        owner: str | None = None,
        job_ids: Sequence[JobId] = (),
    ) -> Switch:
        def work(transaction: Transaction) -> Switch:
            switch = SWITCH.lock(transaction)
            if unless(switch):
                return switch
            resumed = state is SwitchState.RUNNING
            turned = Switch(
                state=state,
                reason=reason,
                since=transaction.now,
                generation=switch.generation + resumed,
            )
            SWITCH.save(transaction, turned)
            transaction.record(_SWITCHED[state], reason=reason, owner=owner, job_ids=job_ids)
            cause = {"worker_id": owner, "job_ids": tuple(job_ids[:MOST_NAMED])} if owner else {}
            transaction.announce(_SWITCHED[state], reason=reason, **cause)
            return turned

        return self._database.write(work)


class _Decide(Protocol):
    def __call__(self, before: Breaker, /, *, now: datetime) -> Breaker: ...


class Breakers(ports.Breakers):
    def __init__(self, database: QueueDatabase) -> None:
        self._database = database

    def read(self, name: str) -> Breaker:
        return self._database.read(breaker_of(name).read)

    def trip(self, name: str, *, seen: int, error: FailureRecord) -> Breaker:
        reason = error.message

        def record(transaction: Transaction, opened: Breaker) -> None:
            note_failures(transaction, [error])
            transaction.record("breaker.opened", reason=reason, breaker=name)
            transaction.announce("breaker.opened", breaker=name, reason=reason, until=opened.until)

        return self._change(name, partial(tripped, seen=seen, reason=reason), record)

    def claim_probe(self, name: str) -> Breaker | None:
        def work(transaction: Transaction) -> Breaker | None:
            before = breaker_of(name).lock(transaction)
            claimed = probe_claimed(before, now=transaction.now)
            if claimed is not None:
                breaker_of(name).save(transaction, claimed)
            return claimed

        return self._database.write(work)

    def give_back_probe(self, name: str, *, seen: int) -> Breaker:
        return self._change(name, partial(probe_given_back, seen=seen))

    def close(self, name: str, *, seen: int) -> Breaker:
        def record(transaction: Transaction, _: Breaker) -> None:
            transaction.record("breaker.closed", breaker=name)
            transaction.announce("breaker.closed", breaker=name)

        return self._change(name, lambda before, *, now: closed(before, seen=seen), record)

    def _change(
        self,
        name: str,
        decide: _Decide,
        record: Callable[[Transaction, Breaker], None] = lambda transaction, breaker: None,
    ) -> Breaker:
        """The breaker as it is after the decision, saved and recorded if that changed it."""

        def work(transaction: Transaction) -> Breaker:
            before = breaker_of(name).lock(transaction)
            after = decide(before, now=transaction.now)
            if after is not before:
                breaker_of(name).save(transaction, after)
                record(transaction, after)
            return after

        return self._database.write(work)


class Health(ports.Health):
    def __init__(self, database: QueueDatabase, policy: QueuePolicy) -> None:
        self._database, self._policy = database, policy

    def report(self) -> HealthReport:
        return self._database.read(self._report)

    def _report(self, reading: Reading) -> HealthReport:
        documents = reading.states()
        return report(
            HEALTH.pick(documents),
            switch=SWITCH.pick(documents),
            breakers=all_breakers(documents),
            silence=read_silence(reading, self._policy),
        )


def read_silence(reading: Reading, policy: QueuePolicy) -> Silence:
    """A heartbeat sets the end of the lease too, so an old one is found by an early end."""
    lock, now = policy.lock_duration, reading.now
    beaten_before = now - silent_after(policy.heartbeat_interval, lock=lock)
    silent = reading.jobs.silent(beaten_before=beaten_before, lock_until=beaten_before + lock)
    return silence_of(silent, now=now)


def note_success(transaction: Transaction, *, count: int) -> None:
    before = HEALTH.lock(transaction)
    after, change = after_success(before, now=transaction.now, count=count)
    HEALTH.save(transaction, after)
    if change is HealthChange.RECOVERED:
        failures = before.consecutive_failures
        transaction.record("health.recovered", consecutive_failures=failures)
        transaction.announce("health.recovered", consecutive_failures=failures)


def note_failures(transaction: Transaction, failures: Iterable[FailureRecord]) -> None:
    after, change = after_failures(HEALTH.lock(transaction), failures)
    HEALTH.save(transaction, after)
    if change is HealthChange.DEGRADED:
        count = after.consecutive_failures
        transaction.record("health.degraded", consecutive_failures=count)
        transaction.announce("health.degraded", consecutive_failures=count)


def note_crash_loop(transaction: Transaction) -> None:
    """Recorded once, until something completes."""
    before = HEALTH.lock(transaction)
    if not before.crash_loop:
        HEALTH.save(transaction, replace(before, crash_loop=True))
        transaction.record("health.critical", reason="every run dies")
        transaction.announce("health.critical", reason="every run dies")
