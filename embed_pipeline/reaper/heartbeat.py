"""The heartbeat: a thread that extends the lease while its worker works, and notices a loss."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from embed_pipeline import telemetry
from embed_pipeline.ports.clock import Clock, SystemClock
from embed_pipeline.reaper.connection import PostgresDatabase
from embed_pipeline.reaper.queue import Claim, JobQueue

INTERVAL = timedelta(seconds=12)
OFTENEST = 0.4
"""Of the lease: two beats fit into it, whatever the interval."""


class Heartbeat:
    """`lost` turns true when somebody else may have the job, and stays so.

    That is: the database says so, or no beat came through for as long as the lease lasts.
    """

    def __init__(
        self,
        queue: JobQueue,
        claim: Claim,
        *,
        interval: timedelta = INTERVAL,
        on_lost: Callable[[], None] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._queue = queue
        self._claim = claim
        self._interval = min(interval, claim.lease * OFTENEST)
        self._on_lost = on_lost
        self._clock = clock or SystemClock()
        self._lost = threading.Event()
        self._stop = threading.Event()
        self._safe_until = self._deadline()

    @property
    def lost(self) -> bool:
        return self._lost.is_set()

    def wait_lost(self, timeout: timedelta) -> bool:
        """Sleep, but not longer than the lease is ours; True when it was lost."""
        return self._clock.wait(self._lost, timeout)

    def run(self) -> None:
        """Beat until stopped or lost; the body of the thread."""
        while not self._stop.is_set() and self._beat():
            self._clock.wait(self._stop, self._interval)

    def stop(self) -> None:
        self._stop.set()

    def _beat(self) -> bool:
        safe_until = self._deadline()  # from before the call: its answer may take its time
        try:
            held = self._queue.extend(self._claim)
        except Exception as error:  # the next beat may come through
            telemetry.emit(
                "heartbeat.failed",
                job_id=self._claim.job_id,
                worker_id=self._claim.worker_id,
                error=error,
            )
            held = self._clock.monotonic() + self._interval.total_seconds() < self._safe_until
        else:
            self._safe_until = safe_until
        if not held and not self._stop.is_set():
            self._lose()
        return held

    def _lose(self) -> None:
        self._lost.set()
        telemetry.emit(
            "lease.lost", count=1, job_id=self._claim.job_id, worker_id=self._claim.worker_id
        )
        if self._on_lost is not None:
            self._on_lost()

    def _deadline(self) -> float:
        return self._clock.monotonic() + self._claim.lease.total_seconds()


@contextmanager
def heartbeat(
    database: PostgresDatabase,
    claim: Claim,
    *,
    interval: timedelta = INTERVAL,
    on_lost: Callable[[], None] | None = None,
    clock: Clock | None = None,
) -> Iterator[Heartbeat]:
    """Keep the lease for the length of the block, on a connection of its own.

    `on_lost` is called in the heartbeat's thread: to kill an encoder, say. The block itself is
    not interrupted, and nothing it writes in the name of a lost lease is accepted.
    """
    own = database.sibling()
    beating = Heartbeat(JobQueue(own), claim, interval=interval, on_lost=on_lost, clock=clock)
    thread = threading.Thread(target=beating.run, name=f"heartbeat of {claim.job_id}", daemon=True)
    thread.start()
    try:
        yield beating
    finally:
        beating.stop()
        thread.join()
        own.close()
