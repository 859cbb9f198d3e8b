"""Is the database there? Asked until it is: a started server is not yet an open database."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import neo4j
from neo4j.exceptions import AuthError, DriverError, Neo4jError

if TYPE_CHECKING:
    from embed_pipeline_tests.neo4j_bed.server import Address

FIRST_PASSWORD = "neo4j"
"""Every new server has it, and does nothing before it is changed."""

PAUSE = 0.1

_SET_PASSWORD = "ALTER CURRENT USER SET PASSWORD FROM $old TO $new"


def await_database(
    address: Address, *, fresh: bool, alive: Callable[[], bool], patience: float
) -> None:
    """Return when a query works; TimeoutError when the server ended or the time is up."""
    deadline = time.monotonic() + patience
    _await_port(address, alive=alive, deadline=deadline)
    if fresh:
        _patiently(lambda: _set_password(address), alive=alive, deadline=deadline)
    _patiently(lambda: _look(address), alive=alive, deadline=deadline)


def connect(address: Address, *, password: str | None = None) -> neo4j.Driver:
    return neo4j.GraphDatabase.driver(
        address.uri,
        auth=(address.user, password or address.password),
        notifications_min_severity="OFF",
        connection_timeout=5.0,
    )


def _look(address: Address) -> None:
    with connect(address) as driver, driver.session(database=address.database) as session:
        session.run("RETURN 1").consume()


def _set_password(address: Address) -> None:
    try:
        with (
            connect(address, password=FIRST_PASSWORD) as driver,
            driver.session(database="system") as session,
        ):
            session.run(_SET_PASSWORD, old=FIRST_PASSWORD, new=address.password).consume()
    except AuthError:
        # Set before a crash that came before the note of it; more tries would be rate-limited.
        return


def _await_port(address: Address, *, alive: Callable[[], bool], deadline: float) -> None:
    parts = urlsplit(address.uri)
    while True:
        try:
            socket.create_connection((parts.hostname, parts.port or 7687), timeout=5).close()
        except OSError as error:
            _pause(error, alive=alive, deadline=deadline)
        else:
            return


def _patiently(action: Callable[[], None], *, alive: Callable[[], bool], deadline: float) -> None:
    while True:
        try:
            action()
        except (DriverError, Neo4jError, OSError) as error:
            _pause(error, alive=alive, deadline=deadline)
        else:
            return


def _pause(error: Exception, *, alive: Callable[[], bool], deadline: float) -> None:
    if not alive():
        raise TimeoutError("the process ended") from error
    if time.monotonic() > deadline:
        raise TimeoutError(f"no answer in time ({error})") from error
    time.sleep(PAUSE)
