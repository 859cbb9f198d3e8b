"""The switch that stops all leasing: paused by a person, or halted by a CRITICAL error."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class SwitchState(StrEnum):
    RUNNING = "running"
    PAUSED = "paused"
    HALTED = "halted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """`generation` grows at every resume: a request sent before it halts the queue no more."""

    state: SwitchState = SwitchState.RUNNING
    reason: str | None = None
    since: datetime | None = None
    generation: int = 0

    @property
    def is_running(self) -> bool:
        return self.state is SwitchState.RUNNING
