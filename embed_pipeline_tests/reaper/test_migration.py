"""`embed-pipeline reaper init`: only adds, can be run again, and meets tables as they are."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import psycopg
import pytest

from docs.generate.configuration import reference
from embed_pipeline.errors import SchemaMissing, StoreBusy
from embed_pipeline.reaper import PostgresDatabase, Reaper, migrate, migration, plan
from embed_pipeline.reaper.schema_statements import INDEXES, JOB_COLUMNS
from embed_pipeline.reaper.tables import TIME_COLUMNS

EXISTING = """
CREATE TABLE jobs (id bigserial PRIMARY KEY, status text NOT NULL, video text NOT NULL,
                   last_heartbeat_at timestamptz, attempt_count integer NOT NULL DEFAULT 0);
CREATE TABLE asr_jobs (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), status varchar(20));
INSERT INTO jobs (status, video, attempt_count)
    SELECT 'processing', 'v' || n, n FROM generate_series(1, 100) AS n;
INSERT INTO asr_jobs (status) VALUES ('processing'), (NULL);
"""


def columns(connection: psycopg.Connection[Any], table: str) -> dict[str, bool]:
    """Each with whether it may be NULL."""
    found = connection.execute(
        "SELECT column_name, is_nullable = 'YES' FROM information_schema.columns"
        " WHERE table_schema = current_schema AND table_name = %s",
        (table,),
    )
    return dict(found.fetchall())


@pytest.fixture
def existing(url: str) -> Any:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(EXISTING.encode())
        yield connection


def test_existing_tables_with_rows_get_what_they_lack(
    database: PostgresDatabase, existing: psycopg.Connection[Any]
) -> None:
    before = existing.execute("SELECT id, status, video, attempt_count FROM jobs ORDER BY id")
    rows = before.fetchall()

    migrate(database)

    after = existing.execute("SELECT id, status, video, attempt_count FROM jobs ORDER BY id")
    assert after.fetchall() == rows
    for table in ("jobs", "asr_jobs"):
        assert JOB_COLUMNS.keys() <= columns(existing, table).keys()
    added = JOB_COLUMNS.keys() - {"attempt_count"}
    assert all(columns(existing, "jobs")[name] for name in added), "all may be NULL"
    assert columns(existing, "job_events").keys() == {"id", "job_id", "data", "created_at"}


def test_old_writers_that_know_none_of_the_columns_go_on(
    database: PostgresDatabase, existing: psycopg.Connection[Any]
) -> None:
    migrate(database)

    existing.execute("INSERT INTO jobs (status, video) VALUES ('queued', 'new')")
    existing.execute("UPDATE jobs SET status = 'processing' WHERE video = 'new'")

    assert Reaper(database).sweep().problems == ()


def test_second_run_finds_nothing_to_do(
    database: PostgresDatabase, existing: psycopg.Connection[Any]
) -> None:
    first = migrate(database)

    assert len(first) > 5
    assert plan(database) == ()
    assert migrate(database) == ()


def test_dry_run_shows_exactly_what_will_be_run_and_does_nothing(
    database: PostgresDatabase, existing: psycopg.Connection[Any]
) -> None:
    planned = plan(database)

    assert "lease_expires_at" not in columns(existing, "jobs")
    assert migrate(database) == planned
    assert planned[0].text == (
        'ALTER TABLE "jobs"\n'
        '    ADD COLUMN IF NOT EXISTS "stage" text,\n'
        '    ADD COLUMN IF NOT EXISTS "max_attempts" integer,\n'
        '    ADD COLUMN IF NOT EXISTS "next_earliest_run_at" timestamptz DEFAULT now(),\n'
        '    ADD COLUMN IF NOT EXISTS "lease_expires_at" timestamptz,\n'
        '    ADD COLUMN IF NOT EXISTS "lease_token" text,\n'
        '    ADD COLUMN IF NOT EXISTS "locked_by" text,\n'
        '    ADD COLUMN IF NOT EXISTS "fail_code" text,\n'
        '    ADD COLUMN IF NOT EXISTS "fail_reason" text'
    )


def test_the_documented_sql_is_what_is_run(database: PostgresDatabase, url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for table in ("jobs", "asr_jobs"):
            connection.execute(
                f"CREATE TABLE {table} (id bigint PRIMARY KEY, status text)".encode()
            )
    document = Path(__file__).parents[2] / "docs" / "reaper.md"
    shown = document.read_text(encoding="utf-8")

    missing = [step.text for step in plan(database) if step.text.replace('"', "") not in shown]

    assert missing == []


def test_events_table_of_others_is_extended(
    database: PostgresDatabase, existing: psycopg.Connection[Any]
) -> None:
    existing.execute("CREATE TABLE job_events (id bigserial, job_id text, ts timestamptz)")
    existing.execute("INSERT INTO job_events (job_id) VALUES ('1')")
    migrate(database)
    existing.execute("UPDATE jobs SET lease_expires_at = now() - interval '1 minute' WHERE id = 7")

    result = Reaper(database).sweep()

    kinds = existing.execute("SELECT data->>'type' FROM job_events ORDER BY id").fetchall()
    assert (result.problems, result.failures) == ((), 1)
    assert kinds == [(None,), ("reaper:failed(timeout)",)]


def test_missing_table_is_refused_and_created_only_when_asked_for(
    database: PostgresDatabase, url: str
) -> None:
    with pytest.raises(SchemaMissing, match=r"no table jobs .* reaper init --create-tables"):
        migrate(database)

    migrate(database, create_tables=True)

    assert plan(database) == ()


def test_table_without_a_status_is_refused(database: PostgresDatabase, url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE jobs (id bigint PRIMARY KEY)")

    with pytest.raises(SchemaMissing, match="The table jobs has no column status"):
        plan(database)


@pytest.mark.parametrize("kind", ["timestamp", "timestamp(3)", "date"])
def test_times_without_a_zone_are_refused_with_the_sql_that_helps(
    database: PostgresDatabase, existing: psycopg.Connection[Any], kind: str
) -> None:
    migrate(database)
    existing.execute("DROP INDEX jobs_reaper_claim_idx")
    for name in TIME_COLUMNS:
        existing.execute(f"ALTER TABLE jobs ALTER COLUMN {name} TYPE {kind}".encode())
    claims = INDEXES["reaper_claim_idx"].format(index="jobs_reaper_claim_idx", table="jobs")
    existing.execute(claims.encode())  # as an older `init` made it

    with pytest.raises(SchemaMissing) as refused:
        plan(database)
    remedy = str(refused.value).partition("run: ")[2].partition("; then")[0]
    existing.execute(remedy.encode())
    migrate(database)

    assert "The table jobs must have next_earliest_run_at and last_heartbeat_at" in str(
        refused.value
    )
    assert plan(database) == ()
    assert Reaper(database).sweep().problems == ()


def test_times_with_a_zone_are_taken_in_any_precision_and_as_a_domain(
    database: PostgresDatabase, existing: psycopg.Connection[Any]
) -> None:
    existing.execute("CREATE DOMAIN exact_time AS timestamptz(3)")
    existing.execute("ALTER TABLE jobs ALTER COLUMN last_heartbeat_at TYPE exact_time")
    existing.execute("ALTER TABLE jobs ADD COLUMN lease_expires_at timestamptz(0)")

    migrate(database)

    assert Reaper(database).sweep().problems == ()


def test_index_that_an_interruption_left_invalid_is_made_again(
    database: PostgresDatabase, existing: psycopg.Connection[Any]
) -> None:
    migrate(database)
    existing.execute(
        "UPDATE pg_index SET indisvalid = false"
        " WHERE indexrelid = 'jobs_reaper_lease_idx'::regclass"
    )

    done = [step.text.partition("\n")[0] for step in migrate(database)]

    assert done == [
        'DROP INDEX CONCURRENTLY IF EXISTS "jobs_reaper_lease_idx"',
        'CREATE INDEX CONCURRENTLY IF NOT EXISTS "jobs_reaper_lease_idx"',
    ]
    assert plan(database) == ()


def test_table_that_stays_locked_is_reported_instead_of_waited_for(
    database: PostgresDatabase, existing: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migration, "TABLE_LOCK_WAIT", "200ms")
    with existing.transaction():
        existing.execute("LOCK TABLE jobs IN SHARE MODE")
        with pytest.raises(StoreBusy, match="locked by another session"):
            migrate(database)

    migrate(database)

    assert plan(database) == ()


def test_two_at_once_do_it_once(database: PostgresDatabase, existing: object, url: str) -> None:
    other = PostgresDatabase(url)
    done: list[int] = []
    threads = [
        threading.Thread(target=lambda base=base: done.append(len(migrate(base))))
        for base in (database, other)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    other.close()

    assert sorted(done)[0] == 0
    assert len(done) == 2
    assert plan(database) == ()


def test_every_variable_is_documented_with_its_default() -> None:
    shown = (Path(__file__).parents[2] / "docs" / "reaper.md").read_text(encoding="utf-8")
    rows = [row for row in reference() if row.group == "Stuck-job reaper"]

    defaults = [f"`{row.literal}`" if row.literal else row.default for row in rows]

    assert len(rows) == 19
    for row, default in zip(rows, defaults, strict=True):
        assert f"| `{row.variable}` | {default} | {row.meaning}" in shown
