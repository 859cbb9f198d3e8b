"""The reaper as a service: sweep, wait, sweep again, until stopped."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import FrameType

from embed_pipeline import telemetry
from embed_pipeline.ports.clock import Clock, SystemClock
from embed_pipeline.reaper.report import SweepResult
from embed_pipeline.reaper.sweep import Reaper


def watch(
    reaper: Reaper,
    *,
    interval: timedelta,
    stop: threading.Event,
    on_sweep: Callable[[SweepResult], None] | None = None,
    clock: Clock | None = None,
) -> int:
    """Sweep now and then every `interval`, from start to start; return the number of sweeps.

    No error of a sweep ends it. After `stop` the current batch is still finished.
    """
    clock = clock or SystemClock()
    telemetry.emit("reaper.started", interval=interval)
    sweeps = 0
    while not stop.is_set():
        started = clock.monotonic()
        try:
            result = reaper.sweep(stop)
            if on_sweep is not None:
                on_sweep(result)
        except Exception as error:  # the next sweep may succeed
            telemetry.emit("reaper.sweep_failed", table="all tables", error=error)
        sweeps += 1
        took = timedelta(seconds=clock.monotonic() - started)
        clock.wait(stop, interval - took)
    telemetry.emit("reaper.stopped", count=sweeps)
    return sweeps


@contextmanager
def in_background(reaper: Reaper, *, interval: timedelta) -> Iterator[None]:
    """Run the service in a thread during the block, then close the reaper."""
    stop = threading.Event()
    thread = threading.Thread(
        target=watch,
        args=(reaper,),
        kwargs={"interval": interval, "stop": stop},
        name="stuck-job reaper",
        daemon=True,
    )
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        reaper.close()


@contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """An event set by SIGTERM and Ctrl-C; the second has its usual effect. Main thread only."""
    stop = threading.Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def on_signal(number: int, _frame: FrameType | None) -> None:
        # In a thread, because the handler may interrupt the wait that holds the event's lock.
        threading.Thread(target=stop.set, daemon=True).start()
        signal.signal(number, before[signal.Signals(number)])

    for number in before:
        signal.signal(number, on_signal)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
