"""The heartbeat: a thread that extends a lease while its jobs are worked on."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable
from datetime import timedelta

from embed_pipeline.domain.job import JobId
from embed_pipeline.domain.lease import Lease, beat_interval, silent_after
from embed_pipeline.ports.clock import Clock
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.telemetry import emit

STOP_SHARE = 0.9
"""After this share of the lease's duration without a beat nothing new is started."""


class Heartbeat:
    """Extends every open job of a lease, in its own thread; uses only this process's clock."""

    def __init__(self, jobs: JobStore, lease: Lease, *, interval: timedelta, clock: Clock) -> None:
        self._jobs, self._lease, self._clock = jobs, lease, clock
        self._interval = beat_interval(interval, lock=lease.duration)
        self._warn_after = silent_after(interval, lock=lease.duration)
        self._held = set(lease.job_ids)
        self._lost: set[JobId] = set()
        self._last_beat = clock.monotonic()
        self._warned = False
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, *, wait: bool = True) -> None:
        self._stop.set()
        if wait:
            self._thread.join()

    def stop_extending(self, job_ids: Iterable[JobId]) -> None:
        """These jobs are done, or lost."""
        with self._lock:
            self._held.difference_update(job_ids)

    def may_start(self, job_ids: Collection[JobId]) -> bool:
        """Whether the lease of these jobs is safe enough to start new work on them."""
        with self._lock:
            return self._lost.isdisjoint(job_ids) and not self._silent_for(
                self._lease.duration * STOP_SHARE
            )

    def beat(self) -> None:
        """One beat; an error is logged, and the next beat tries again."""
        with self._lock:
            held = sorted(self._held)
        try:
            result = self._jobs.heartbeat(self._lease, held)
        except Exception as error:  # whatever it was, the next beat may succeed
            emit("heartbeat.failed", worker_id=self._lease.owner, error=error)
            self._warn_if_silent()
            return
        # A beat that succeeded may be late: the database hung, or this process was suspended.
        self._warn_if_silent()
        with self._lock:
            self._last_beat, self._warned = self._clock.monotonic(), False
            lost = self._held.intersection(result.lost)
            self._held -= lost
            self._lost |= lost
        if lost:
            emit("lease.lost", worker_id=self._lease.owner, count=len(lost), job_ids=sorted(lost))

    def _run(self) -> None:
        while not self._stop.wait(self._interval.total_seconds()):
            self.beat()

    def _warn_if_silent(self) -> None:
        with self._lock:
            if self._warned or not self._held or not self._silent_for(self._warn_after):
                return
            self._warned = True
            silent_for = self._clock.monotonic() - self._last_beat
        emit("heartbeat.missed", worker_id=self._lease.owner, silent_for=silent_for)

    def _silent_for(self, duration: timedelta) -> bool:
        return self._clock.monotonic() - self._last_beat >= duration.total_seconds()
