"""One Neo4j driver per process: opened on first use, and again after a fork."""

from __future__ import annotations

import logging
import os
import weakref
from collections.abc import Callable
from datetime import timedelta

import neo4j

FIRST_RETRY_DELAY = 0.05
"""Seconds; the driver's own second is long for a deadlock, whose other side needs milliseconds."""

IDLE_BEFORE_CHECK = 30.0
"""Seconds after which a pooled connection is tested before use: a firewall may have dropped it."""

USER_AGENT = "embed-pipeline"

# Where nobody has set up logging, each of its retries would be a line on stderr; what cannot be
# reached after them is one error of ours.
logging.getLogger("neo4j").addHandler(logging.NullHandler())


class Drivers:
    """By process: a connection that two processes read from gives each half of the answers."""

    def __init__(
        self,
        uri: str,
        *,
        user: str,
        password: str,
        connect_timeout: timedelta,
        retry_time: timedelta,
    ) -> None:
        self._open: Callable[[], neo4j.Driver] = lambda: neo4j.GraphDatabase.driver(
            uri,
            auth=(user, password),
            user_agent=USER_AGENT,
            connection_timeout=connect_timeout.total_seconds(),
            connection_acquisition_timeout=max(connect_timeout * 2, retry_time).total_seconds(),
            liveness_check_timeout=IDLE_BEFORE_CHECK,
            max_transaction_retry_time=retry_time.total_seconds(),
            initial_retry_delay=FIRST_RETRY_DELAY,
            # Each notification would be logged with the whole statement.
            notifications_min_severity="OFF",
            telemetry_disabled=True,
        )
        self._drivers: dict[int, neo4j.Driver] = {}
        weakref.finalize(self, _close_own, self._drivers)

    def own(self) -> neo4j.Driver:
        driver = self._drivers.get(os.getpid())
        if driver is None:
            opened = self._open()
            driver = self._drivers.setdefault(os.getpid(), opened)
            if driver is not opened:
                opened.close()  # another thread was quicker
        return driver

    def close(self) -> None:
        """Give the connections back; the next use opens new ones."""
        _close_own(self._drivers)


def _close_own(drivers: dict[int, neo4j.Driver]) -> None:
    """Those of other processes, from before a fork, are not ours to close."""
    driver = drivers.pop(os.getpid(), None)
    if driver is not None:
        driver.close()
