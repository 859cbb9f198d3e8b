"""May a run start, a lease be taken, a request be sent? One decision, from what is shared.

The switch, the graph's breaker and the provider's breaker have a say, in this order. The three
steps differ only in who may try while a breaker is open: the one that probes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum, StrEnum, auto

from embed_pipeline.domain.breaker import Breaker
from embed_pipeline.domain.lease import Refusal, RefusalReason


class SwitchState(StrEnum):
    RUNNING = "running"
    PAUSED = "paused"
    HALTED = "halted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """Stops all leasing: paused by a person, or halted by a CRITICAL error.

    `generation` grows at every resume: a request sent before it halts the queue no more.
    """

    state: SwitchState = SwitchState.RUNNING
    reason: str | None = None
    since: datetime | None = None
    generation: int = 0

    @property
    def is_running(self) -> bool:
        return self.state is SwitchState.RUNNING


class Step(Enum):
    RUN = auto()
    """A run begins: after the graph's pause it probes the graph first."""
    LEASE = auto()
    """After the provider's pause a lease is its probe; what cannot be written is not leased."""
    REQUEST = auto()
    """Of the requests only that of a probing lease may go to a provider that does not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlState:
    """What all workers share that may stop the next step, read in one transaction."""

    now: datetime
    switch: Switch
    provider: Breaker
    graph: Breaker

    def refusal(self, step: Step, *, probing: bool = False) -> Refusal | None:
        """Why the step may not be taken now; None when it may.

        `probing`: this is the request of a lease that was granted as the provider's probe.
        """
        if not self.switch.is_running:
            return _stopped(self.switch)
        if self.graph.blocks(self.now) if step is Step.RUN else self.graph.is_open:
            return behind(self.graph)
        if step is Step.REQUEST:
            held_up = self.provider.is_open and not probing
        else:
            held_up = self.provider.blocks(self.now)
        return behind(self.provider) if held_up else None


def _stopped(switch: Switch) -> Refusal:
    halted = switch.state is SwitchState.HALTED
    reason = RefusalReason.HALTED if halted else RefusalReason.PAUSED
    return Refusal(reason=reason, detail=switch.reason or "")


def behind(breaker: Breaker) -> Refusal:
    """It goes on by itself when the breaker's pause is over."""
    return Refusal(
        reason=RefusalReason.BREAKER_OPEN,
        detail=f"{breaker.name} does not answer ({breaker.reason})",
        until=breaker.until,
    )
