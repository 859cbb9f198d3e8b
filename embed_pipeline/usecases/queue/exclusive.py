"""Tasks that one process does at a time, whoever starts them: under a named lease of the queue."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

from embed_pipeline.errors import EmbedPipelineError
from embed_pipeline.worker.context import Services

LASTS = timedelta(minutes=1)
"""How long others wait for a process that died."""


class TaskLease:
    """`holder` is who does the task now: this process if `is_held`."""

    def __init__(self, services: Services, task: str, owner: str) -> None:
        self._services, self._task, self._owner = services, task, owner
        self._renew()

    @property
    def is_held(self) -> bool:
        return self.holder == self._owner

    def keep(self) -> bool:
        """Call it between pages: extends the lease in time; False when another has taken over."""
        if self._services.clock.monotonic() >= self._renew_at:
            self._renew()
        return self.is_held

    def release(self) -> None:
        # A lease that cannot be released now ends by itself.
        with suppress(EmbedPipelineError):
            self._services.jobs.named_leases.release(self._task, owner=self._owner)

    def _renew(self) -> None:
        leases = self._services.jobs.named_leases
        self.holder = leases.take(self._task, owner=self._owner, duration=LASTS).owner
        self._renew_at = self._services.clock.monotonic() + LASTS.total_seconds() / 3


@contextmanager
def exclusively(services: Services, task: str, *, owner: str | None = None) -> Iterator[TaskLease]:
    """The lease of the task, which another process may hold; `owner` is shown to others."""
    lease = TaskLease(services, task, owner or uuid.uuid4().hex)
    try:
        yield lease
    finally:
        if lease.is_held:
            lease.release()
