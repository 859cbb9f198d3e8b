"""The tables of the queue's file; made on first use, versioned by `user_version`."""

from __future__ import annotations

import sqlite3

from embed_pipeline.domain.job import HIGHEST_PRIORITY, LOWEST_PRIORITY
from embed_pipeline.domain.lease import SMALL_FROM_STRIKES, SOLO_FROM_STRIKES, Tier
from embed_pipeline.errors import SchemaMissing
from embed_pipeline.stores.queue.sql.statements import HAD_NO_TEXT, MALFORMED_INDEX, NO_ERROR

VERSION = 6

_TABLES = f"""
CREATE TABLE embed_job (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    entity_uid TEXT NOT NULL,
    model TEXT NOT NULL,
    version TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pending', 'processing', 'completed', 'failed')),
    priority INTEGER NOT NULL
        CHECK (priority BETWEEN {LOWEST_PRIORITY} AND {HIGHEST_PRIORITY}),
    rank INTEGER GENERATED ALWAYS AS (-priority) VIRTUAL,
    created_at INTEGER NOT NULL,
    available_at INTEGER NOT NULL,
    processed_at INTEGER,
    lock_owner TEXT,
    lock_until INTEGER,
    lease_token TEXT,
    done_token TEXT,
    last_heartbeat_at INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    max_attempts INTEGER NOT NULL,
    recoveries INTEGER NOT NULL DEFAULT 0,
    recovered_at INTEGER,
    strikes INTEGER NOT NULL DEFAULT 0,
    tier INTEGER GENERATED ALWAYS AS (
        CASE WHEN strikes >= {SOLO_FROM_STRIKES} THEN {Tier.SOLO:d}
             WHEN strikes >= {SMALL_FROM_STRIKES} THEN {Tier.SMALL:d} ELSE {Tier.NORMAL:d} END
    ) VIRTUAL,
    force INTEGER NOT NULL DEFAULT 0,
    again INTEGER NOT NULL DEFAULT 0,
    error TEXT,
    error_type TEXT,
    error_category TEXT,
    error_stack TEXT,
    fail_code TEXT,
    fail_reason TEXT,
    UNIQUE (entity_uid, model, version)
);

-- Equality down to the due time, so that a lease seeks and never walks deferred jobs.
CREATE INDEX job_ready ON embed_job (model, rank, tier, available_at) WHERE status = 'pending';
-- A job whose lease has no end is stale.
CREATE INDEX job_expiry ON embed_job (coalesce(lock_until, 0)) WHERE status = 'processing';
CREATE INDEX job_holder ON embed_job (lock_owner, lease_token) WHERE status = 'processing';
CREATE INDEX job_ended ON embed_job (processed_at, id) WHERE status IN ('completed', 'failed');
CREATE INDEX job_failed ON embed_job (processed_at, id) WHERE status = 'failed';
CREATE INDEX job_malformed ON embed_job {MALFORMED_INDEX};

CREATE TABLE event (
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    owner TEXT,
    reason TEXT,
    job_ids TEXT NOT NULL,
    facts TEXT NOT NULL
);
CREATE INDEX event_at ON event (at);

-- Switch, breakers, health and budgets: one small document each.
CREATE TABLE shared_state (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
"""

_UPGRADES = {
    # The history pages through jobs that ended in the same millisecond, and through failed ones.
    1: """
DROP INDEX job_ended;
CREATE INDEX job_ended ON embed_job (processed_at, id) WHERE status IN ('completed', 'failed');
CREATE INDEX job_failed_id ON embed_job (id) WHERE status = 'failed';
""",
    # Fewer indexes for every lease and completion to keep.
    2: """
DROP INDEX job_owner;
DROP INDEX job_token;
DROP INDEX job_failed;
DROP INDEX job_failed_id;
CREATE INDEX job_holder ON embed_job (lock_owner, lease_token) WHERE status = 'processing';
CREATE INDEX job_failed ON embed_job (processed_at, id) WHERE status = 'failed';
""",
    # Budgets are documents; those of before, a minute old at most, are forgotten. Their table stays
    # for a program of 0.1 that has the file open: it may not spend beside the new ones.
    3: """
DELETE FROM budget_bucket;
CREATE TRIGGER budget_bucket_is_closed BEFORE INSERT ON budget_bucket BEGIN SELECT RAISE(ABORT,
'A newer embed-pipeline has upgraded this queue: stop this program and start the new one.'); END;
DELETE FROM shared_state WHERE name LIKE 'pause:%';
DROP INDEX job_expiry;
CREATE INDEX job_expiry ON embed_job (coalesce(lock_until, 0)) WHERE status = 'processing';
""",
    4: f"CREATE INDEX job_malformed ON embed_job {MALFORMED_INDEX}",
    # They keep the time of their end. An event names at most 1 000 of them.
    5: f"""
INSERT INTO event (at, kind, reason, job_ids, facts)
SELECT strftime('%s', 'now') * 1000, 'jobs.completed', 'nothing to embed', json_group_array(id),
    '{{}}' FROM (
        SELECT id, (row_number() OVER (ORDER BY id) - 1) / 1000 AS page
        FROM embed_job WHERE {HAD_NO_TEXT}
    ) GROUP BY page;
UPDATE embed_job SET status = 'completed', {NO_ERROR} WHERE {HAD_NO_TEXT}
""",  # noqa: S608  (constants)
}
"""What makes a file of this version one of the next."""


def prepare(connection: sqlite3.Connection) -> None:
    """Make the tables in an empty file, bring an older one up; refuse one of a newer version."""
    if _version(connection) == VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have been quicker between the check and the lock.
        found = _version(connection)
        if found <= VERSION:
            steps = (
                [_UPGRADES[version] for version in range(found, VERSION)] if found else [_TABLES]
            )
            for statement in ";\n".join(steps).split(";\n"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    if found > VERSION:
        raise SchemaMissing(
            f"The queue's file has schema version {found}, this program knows {VERSION}: "
            "use the program that made it, or move the file away to start an empty queue."
        )


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
