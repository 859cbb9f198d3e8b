"""The switch in the queue's database."""

from __future__ import annotations

from dataclasses import replace

from embed_pipeline.domain.switch import Switch, SwitchState
from embed_pipeline.ports.queue_control import SwitchBoard
from embed_pipeline.stores.neo4j.queue.backend import QueueDatabase, QueueTransaction
from embed_pipeline.stores.neo4j.queue.shared_state import lock_switch, read_switch, save_switch


class Neo4jSwitchBoard(SwitchBoard):
    def __init__(self, queue: QueueDatabase) -> None:
        self._queue = queue

    def read(self) -> Switch:
        return self._queue.read(read_switch)

    def pause(self, reason: str) -> Switch:
        def work(transaction: QueueTransaction) -> Switch:
            switch = lock_switch(transaction)
            if not switch.is_running:
                return switch
            return _turn(transaction, switch, SwitchState.PAUSED, reason)

        return self._queue.write(work)

    def halt(self, reason: str, *, seen: int) -> Switch:
        def work(transaction: QueueTransaction) -> Switch:
            switch = lock_switch(transaction)
            if switch.state is SwitchState.HALTED or switch.generation != seen:
                return switch
            return _turn(transaction, switch, SwitchState.HALTED, reason)

        return self._queue.write(work)

    def resume(self, reason: str) -> Switch:
        def work(transaction: QueueTransaction) -> Switch:
            switch = lock_switch(transaction)
            if switch.is_running:
                return switch
            resumed = replace(switch, generation=switch.generation + 1)
            return _turn(transaction, resumed, SwitchState.RUNNING, reason)

        return self._queue.write(work)


_EVENTS = {
    SwitchState.PAUSED: "queue.paused",
    SwitchState.HALTED: "queue.halted",
    SwitchState.RUNNING: "queue.resumed",
}


def _turn(transaction: QueueTransaction, switch: Switch, state: SwitchState, reason: str) -> Switch:
    turned = replace(switch, state=state, reason=reason, since=transaction.now)
    save_switch(transaction, turned)
    transaction.record(_EVENTS[state], reason=reason)
    transaction.announce(_EVENTS[state], reason=reason)
    return turned
