"""The heartbeat: a thread that extends the lease while its worker works, and notices its loss."""

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
MOST_OF_LEASE = 0.4
"""The longest interval, as a share of the lease: two beats always fit into it."""


class Heartbeat:
    """`lost` becomes true, for good, when another worker may hold the job.

    That is when the database says so, or when no beat succeeded for as long as the lease lasts.
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
        self._interval = min(interval, claim.lease * MOST_OF_LEASE)
        self._on_lost = on_lost
        self._clock = clock or SystemClock()
        self._lost = threading.Event()
        self._stop = threading.Event()
        self._safe_until = self._deadline()

    @property
    def lost(self) -> bool:
        return self._lost.is_set()

    def wait_lost(self, timeout: timedelta) -> bool:
        """Sleep until `timeout` or the loss of the lease; True when it was lost."""
        return self._clock.wait(self._lost, timeout)

    def run(self) -> None:
        """Beat until stopped or lost; the body of the thread."""
        while not self._stop.is_set() and self._beat():
            self._clock.wait(self._stop, self._interval)

    def stop(self) -> None:
        self._stop.set()

    def _beat(self) -> bool:
        safe_until = self._deadline()  # taken before the call, whose answer may be slow
        try:
            held = self._queue.extend(self._claim)
        except Exception as error:  # the next beat may succeed
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

    `on_lost` is called in the heartbeat's thread, for example to kill an encoder. The block is not
    interrupted, but nothing that it writes with a lost lease is accepted.
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
