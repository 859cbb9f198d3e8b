"""The switch in the queue's file."""

from __future__ import annotations

from dataclasses import replace

from embed_pipeline.domain.switch import Switch, SwitchState
from embed_pipeline.ports.queue_control import SwitchBoard
from embed_pipeline.stores.sqlite.queue.backend import QueueFile, QueueTransaction
from embed_pipeline.stores.sqlite.queue.shared_state import read_switch, save_switch


class SqliteSwitchBoard(SwitchBoard):
    def __init__(self, queue: QueueFile) -> None:
        self._queue = queue

    def read(self) -> Switch:
        with self._queue.reading() as look:
            return read_switch(look)

    def pause(self, reason: str) -> Switch:
        with self._queue.transaction() as transaction:
            switch = read_switch(transaction)
            if not switch.is_running:
                return switch
            return _turn(transaction, switch, SwitchState.PAUSED, reason)

    def halt(self, reason: str, *, seen: int) -> Switch:
        with self._queue.transaction() as transaction:
            switch = read_switch(transaction)
            if switch.state is SwitchState.HALTED or switch.generation != seen:
                return switch
            return _turn(transaction, switch, SwitchState.HALTED, reason)

    def resume(self, reason: str) -> Switch:
        with self._queue.transaction() as transaction:
            switch = read_switch(transaction)
            if switch.is_running:
                return switch
            resumed = replace(switch, generation=switch.generation + 1)
            return _turn(transaction, resumed, SwitchState.RUNNING, reason)


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
