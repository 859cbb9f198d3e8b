"""SQLite files of version 0.1 are brought up by whoever opens them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from embed_pipeline import wiring
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.domain.partition import PartitionCounts
from embed_pipeline.errors import SchemaMissing
from embed_pipeline.settings import Settings, load_settings
from embed_pipeline.stores.sqlite.queue import schema
from embed_pipeline_tests.interfaces.command_line import environment, run_program
from embed_pipeline_tests.migration.contract import (
    HAD_NO_TEXT,
    MODEL,
    OLD_DATA,
    VARIABLES,
    MigrationContract,
    check_job_without_text,
)

OLD_VERSION = 3
"""Of the queue's file in 0.1, which refuses every higher one."""

# What the limiter of 0.1 runs for each request (commit 4fa41ca).
READ_BUCKETS = """
SELECT bucket, requests, tokens FROM budget_bucket WHERE provider = :provider AND bucket >= :oldest
"""
SPEND_IN_BUCKET = """
INSERT INTO budget_bucket (provider, bucket, requests, tokens)
VALUES (:provider, :bucket, :requests, :tokens)
ON CONFLICT (provider, bucket)
DO UPDATE SET requests = requests + excluded.requests, tokens = tokens + excluded.tokens
"""
RETURN_TO_BUCKET = """
UPDATE budget_bucket
SET requests = max(0, requests - :requests), tokens = max(0, tokens - :tokens)
WHERE provider = :provider AND bucket = :bucket
"""
FORGET_BUCKETS = "DELETE FROM budget_bucket WHERE provider = :provider AND bucket < :oldest"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name in ("queue", "graph"):
        with closing(sqlite3.connect(tmp_path / f"{name}.sqlite")) as connection:
            connection.executescript((OLD_DATA / f"{name}.sql").read_text())
    return tmp_path


@pytest.fixture
def settings(home: Path) -> Settings:
    return load_settings(VARIABLES | {"EMBED_HOME": str(home)})


class TestMigration(MigrationContract): ...


def version_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def test_old_version_is_raised_so_that_programs_of_0_1_refuse_the_file(
    home: Path, settings: Settings
) -> None:
    assert version_of(home / "queue.sqlite") == OLD_VERSION

    with closing(wiring.open_job_store(settings)) as jobs:
        jobs.has_stale()

    assert version_of(home / "queue.sqlite") == schema.VERSION > OLD_VERSION


def test_file_of_a_newer_version_is_refused(home: Path, settings: Settings) -> None:
    with closing(sqlite3.connect(home / "queue.sqlite")) as connection:
        connection.execute(f"PRAGMA user_version = {schema.VERSION + 1}")

    with (
        closing(wiring.open_job_store(settings)) as jobs,
        pytest.raises(SchemaMissing, match=f"has schema version {schema.VERSION + 1}"),
    ):
        jobs.has_stale()


def test_program_of_0_1_with_the_file_open_is_told_to_stop(home: Path, settings: Settings) -> None:
    """Its budget would not be shared, so it gets none; what it has spent it may still return."""
    spent = {"provider": "mock", "bucket": 1, "requests": 1, "tokens": 5, "oldest": 0}
    with closing(sqlite3.connect(home / "queue.sqlite", isolation_level=None)) as old:
        old.execute(SPEND_IN_BUCKET, spent)
        assert len(old.execute(READ_BUCKETS, spent).fetchall()) == 2

        with closing(wiring.open_job_store(settings)) as jobs:
            jobs.has_stale()

        assert old.execute(READ_BUCKETS, spent).fetchall() == []
        for statement in (RETURN_TO_BUCKET, FORGET_BUCKETS):
            old.execute(statement, spent)
        with pytest.raises(sqlite3.IntegrityError, match="stop this program and start the new one"):
            old.execute(SPEND_IN_BUCKET, spent)


def test_job_that_0_1_failed_for_want_of_a_text_is_completed(
    home: Path, settings: Settings
) -> None:
    with closing(sqlite3.connect(home / "queue.sqlite")) as connection:
        fields = ", ".join(f"{name} = :{name}" for name in HAD_NO_TEXT)
        connection.execute(f"UPDATE embed_job SET {fields} WHERE entity_uid = 'e07'", HAD_NO_TEXT)
        connection.commit()

    with closing(wiring.open_job_store(settings)) as jobs:
        check_job_without_text(jobs)


def test_a_command_brings_the_files_up_by_itself(home: Path) -> None:
    answer = run_program("status", "--json", env=environment(home, **VARIABLES), cwd=home)

    assert (answer.code, answer.err) == (0, "")
    assert version_of(home / "queue.sqlite") == schema.VERSION


def test_graph_file_gets_its_labels_when_it_is_opened(home: Path, settings: Settings) -> None:
    with closing(sqlite3.connect(home / "graph.sqlite")) as connection:
        connection.execute(
            "UPDATE Entity SET name = ' ', entityType = NULL, observations = ? WHERE uid = 'e01'",
            (b'["", " "]',),
        )
        connection.commit()

    with closing(wiring.open_entity_store(settings)) as graph:
        counts = graph.counts(model=MODEL)
        assert graph.embedded_versions([EntityUid("e01")], model=MODEL) == {}
        audited = graph.audit_page(model=MODEL, after=None, size=100)

    assert counts == PartitionCounts(
        entities=20, embedded=3, nothing_to_embed=1, excluded=2, marked=15
    )
    assert (audited.repaired, audited.marked, audited.stale) == (0, 0, 1)
