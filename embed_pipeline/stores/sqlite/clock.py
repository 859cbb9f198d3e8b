"""The clock of a SQLite queue: that of the machine, which a step of its wall clock does not move.

SQLite has no server with a clock, and a lease must not end early because a wall clock was set. So
the file remembers the wall time of one moment together with the boot and the time since that boot.
Within this boot all processes count on from there. The first to open the file after a reboot takes
the wall clock again.
"""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

from embed_pipeline.domain.check import TOLERATED_SKEW, CheckResult, note, ok
from embed_pipeline.ports.clock import SystemClock
from embed_pipeline.stores.encoding import Document, from_ms, from_us, to_us
from embed_pipeline.stores.sqlite.connection import is_busy
from embed_pipeline.telemetry import emit

_READ = "SELECT value FROM shared_state WHERE name = 'clock'"
_WRITE = "INSERT OR REPLACE INTO shared_state (name, value) VALUES ('clock', ?)"
_NEWEST_EVENT = "SELECT max(at) FROM event"

BELIEVED_BACK = timedelta(days=1)
"""A wall clock further behind the newest event is not believed: without a battery it starts in
1970, and jobs that are due now would wait for years."""

_REPORTED: set[str] = set()
"""The boots in which this process has logged that the clocks differ."""


class Host:
    """What the machine tells of the time; tests replace it."""

    def wall(self) -> datetime:
        return SystemClock().now()

    def boot(self) -> str | None:
        """Which boot this is; None where the machine has no such clock: macOS, Windows."""
        return _boot()

    def since_boot(self) -> timedelta:
        """With the time that the machine was suspended."""
        return timedelta(microseconds=time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000)


class MachineClock(SystemClock):
    def __init__(self, host: Host | None = None) -> None:
        self._host = host or Host()
        self._boot: str | None = None
        self._booted_at: datetime | None = None
        """By the wall clock of the moment that the file remembers. None: the wall clock is used."""

    def now(self) -> datetime:
        if self._booted_at is None:
            return self._host.wall()
        now = self._booted_at + self._host.since_boot()
        ahead = self._host.wall() - now
        if abs(ahead) > TOLERATED_SKEW and self._boot and self._boot not in _REPORTED:
            _REPORTED.add(self._boot)
            emit("clock.differs", ahead=round(ahead.total_seconds(), 1))
        return now

    def check(self) -> CheckResult:
        """What the doctor says of it."""
        if self._booted_at is None:
            return ok("clock", "leases are timed by the clock of this machine")
        ahead = self._host.wall() - self.now()
        if abs(ahead) <= TOLERATED_SKEW:
            return ok("clock", "leases are timed by this machine's clock since its boot")
        way = "ahead of" if ahead > timedelta(0) else "behind"
        return note(
            "clock",
            f"the wall clock of this machine is {abs(ahead.total_seconds()):.1f} s {way} the"
            " queue's, which counts from the boot; leases follow the queue's, logs the wall clock."
            " After a reboot the queue takes the wall clock again",
        )

    def anchor(self, connection: sqlite3.Connection) -> None:
        """Read what the file remembers, or write it in the first use after a boot.

        Where it cannot be written (disk full, read-only) the wall clock serves.
        """
        self._boot, self._booted_at = self._host.boot(), None
        if self._boot is None or self._read(connection):
            return
        try:
            connection.execute("BEGIN IMMEDIATE")
            # Another process may have been quicker between the check and the lock.
            if not self._read(connection):
                connection.execute(_WRITE, (json.dumps(self._moment(connection)),))
                self._read(connection)
            connection.execute("COMMIT")
        except sqlite3.OperationalError as error:
            with suppress(sqlite3.OperationalError):
                connection.execute("ROLLBACK")
            if is_busy(error):
                raise
            self._booted_at = None

    def _read(self, connection: sqlite3.Connection) -> bool:
        found = connection.execute(_READ).fetchone()
        document = json.loads(found[0]) if found else {}
        if document.get("boot") != self._boot:
            return False
        since_boot = timedelta(microseconds=document["since_boot"])
        self._booted_at = from_us(document["wall"]) - since_boot
        return True

    def _moment(self, connection: sqlite3.Connection) -> Document:
        wall, (newest,) = self._host.wall(), connection.execute(_NEWEST_EVENT).fetchone()
        if newest is not None and from_ms(newest) - wall > BELIEVED_BACK:
            wall = from_ms(newest)
        since_boot = self._host.since_boot() // timedelta(microseconds=1)
        return {"boot": self._boot, "since_boot": since_boot, "wall": to_us(wall)}


@cache
def _boot() -> str | None:
    """With the namespace of the clock, by which a container can have an offset of its own."""
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return None
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        namespace = Path("/proc/self/ns/time")
        return f"{boot} {namespace.readlink() if namespace.is_symlink() else ''}".strip()
    except OSError:
        return None
