"""One Neo4j driver per process and server: opened by its first user, closed by its last."""

from __future__ import annotations

import logging
import os
import re
import threading
import weakref
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from typing import cast
from urllib.parse import urlsplit

import neo4j

FIRST_RETRY_DELAY = 0.05
"""Seconds; the driver's own second is long for a deadlock, whose other side needs milliseconds."""

IDLE_BEFORE_CHECK = 30.0
"""Seconds after which a pooled connection is tested before use: a firewall may have dropped it."""

USER_AGENT = "embed-pipeline"

# Without any logging set up, each of the driver's retries would be a line on stderr; a server that
# stays unreachable is one error of ours.
logging.getLogger("neo4j").addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionOptions:
    """How a server is reached; users with the same options share a driver."""

    uri: str = field(repr=False)
    user: str
    password: str = field(repr=False)
    connect_timeout: timedelta
    retry_time: timedelta

    @property
    def shown_uri(self) -> str:
        """Without user, password and query."""
        parts = urlsplit(self.uri)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"

    def open(self) -> neo4j.Driver:
        """Connects to nothing yet."""
        patience = max(self.connect_timeout * 2, self.retry_time)
        return neo4j.GraphDatabase.driver(
            self.uri,
            auth=(self.user, self.password),
            user_agent=USER_AGENT,
            connection_timeout=self.connect_timeout.total_seconds(),
            connection_acquisition_timeout=patience.total_seconds(),
            liveness_check_timeout=IDLE_BEFORE_CHECK,
            max_transaction_retry_time=self.retry_time.total_seconds(),
            initial_retry_delay=FIRST_RETRY_DELAY,
            # Each notification would be logged with the whole statement.
            notifications_min_severity="OFF",
            telemetry_disabled=True,
        )


@dataclass(frozen=True, slots=True)
class _Shared:
    driver: neo4j.Driver
    users: set[int] = field(default_factory=set)


class Drivers:
    """By process: two processes that read from one connection get half of the answers each."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, ConnectionOptions], _Shared] = {}
        self.renew_lock()

    def renew_lock(self) -> None:
        """In a forked child, where the lock may be held by a thread that was not copied.

        Reentrant, because the garbage collector may finalize a store inside `take`.
        """
        self._lock = threading.RLock()

    def take(self, options: ConnectionOptions, *, user: int) -> neo4j.Driver:
        """The same driver for the same user, however often."""
        with self._lock:
            key = os.getpid(), options
            shared = self._open.get(key)
            if shared is None:
                shared = self._open[key] = _Shared(options.open())
            shared.users.add(user)
            return shared.driver

    def give_back(self, options: ConnectionOptions, *, user: int) -> None:
        """The last user closes the driver; drivers of other processes are left alone."""
        with self._lock:
            key = os.getpid(), options
            shared = self._open.get(key)
            if shared is None or user not in shared.users:
                return
            shared.users.remove(user)
            if shared.users:
                return
            del self._open[key]
        shared.driver.close()


DRIVERS = Drivers()
if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=DRIVERS.renew_lock)


class DriverReference:
    """One user's reference to the shared driver: from its first use on, and again after a fork."""

    def __init__(self, options: ConnectionOptions) -> None:
        self._options = options
        weakref.finalize(self, DRIVERS.give_back, options, user=id(self))

    def driver(self) -> neo4j.Driver:
        return DRIVERS.take(self._options, user=id(self))

    def release(self) -> None:
        """The next use takes the driver again."""
        DRIVERS.give_back(self._options, user=id(self))


def early_begin(session: neo4j.Session) -> AbstractContextManager[object]:
    """Send BEGIN together with the first statement, as the driver's own `execute_query` does.

    Saves a round trip of every transaction. The switch is private to the driver, so a driver
    without it does without.
    """
    switch = getattr(session, "_pipelined_begin", None)
    return nullcontext() if switch is None else cast("AbstractContextManager[object]", switch)


def release_of(version: str) -> tuple[int, int] | None:
    """Major and minor of `5.26.29`, `5.27-aura` or `Neo4j/5.26.29`; None if it has none."""
    found = re.search(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else None
