"""The reaper's sums are kept with those of the embedding queue, where the metrics are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing

from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.ports.queue_control import Counters


class QueueCounters(Counters):
    """Opens the queue only to add or read: a sweep must not need it for anything else."""

    def __init__(self, open_queue: Callable[[], JobStore]) -> None:
        self._open_queue = open_queue

    def add(self, amounts: Mapping[str, int]) -> None:
        with closing(self._open_queue()) as queue:
            queue.counters.add(amounts)

    def read(self) -> Mapping[str, int]:
        with closing(self._open_queue()) as queue:
            return queue.counters.read()
