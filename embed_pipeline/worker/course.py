"""Whether a run goes on, and why it does not."""

from __future__ import annotations

from datetime import datetime

from embed_pipeline.worker.report import Ending


class RunState:
    """The first reason to end is the one that is told; a spent budget gives way to any other."""

    def __init__(self) -> None:
        self.ending: Ending | None = None
        self.back_at: datetime | None = None

    @property
    def is_over(self) -> bool:
        return self.ending is not None

    @property
    def waits_for_budget(self) -> bool:
        return self.ending is Ending.BUDGET_SPENT

    def end(self, ending: Ending, back_at: datetime | None = None) -> None:
        if not self.is_over or self.waits_for_budget or ending is Ending.HALTED:
            self.ending, self.back_at = ending, back_at
