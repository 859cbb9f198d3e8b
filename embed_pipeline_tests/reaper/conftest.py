"""A schema of its own for every test of the reaper, on the PostgreSQL of all tests."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from urllib.parse import quote

import psycopg
import pytest
from psycopg import sql

from embed_pipeline import reaper
from embed_pipeline.reaper.connection import tolerate_far_times
from embed_pipeline_tests.reaper.scene import Scene


@pytest.fixture
def url(postgres_url: str) -> Iterator[str]:
    schema = f"test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
    joint = "&" if "?" in postgres_url else "?"
    yield f"{postgres_url}{joint}options={quote(f'-csearch_path={schema}')}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
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
