"""Every statement of sweep and worker; `compose` puts in the table, all values are bound.

Durations are sent as seconds: an interval with days would follow the session's summer time.
Ids are compared in the table's own type, so that keys of any type use their index. Lists of ids
appear only beside the column (`= ANY`): psycopg sends strings untyped, and the column types them.
"""

from __future__ import annotations

from typing import LiteralString

from psycopg import sql

_OR_SKIP = "FOR UPDATE SKIP LOCKED"

_STUCK = """
SELECT id AS key, id::text AS job_id, stage::text AS stage, attempt_count, max_attempts,
       locked_by::text AS locked_by, lease_token::text AS lease_token, lease_expires_at,
       last_heartbeat_at, now() AS now
FROM {table}
"""

EXPIRED_ROWS: LiteralString = (
    _STUCK
    + """
WHERE status = 'processing' AND lease_expires_at < now() AND id <> ALL (%(skip)s)
ORDER BY lease_expires_at
LIMIT %(limit)s
"""
)

# The first bound lets the index find the start, the second is the rule of `StuckJob.lease_end`.
SILENT_ROWS: LiteralString = (
    _STUCK
    + """
WHERE status = 'processing' AND lease_expires_at IS NULL
  AND last_heartbeat_at < now() - make_interval(secs => %(shortest)s)
  AND last_heartbeat_at < now() - make_interval(secs =>
      CASE stage::text WHEN 'clip' THEN %(clip)s WHEN 'asr' THEN %(asr)s
                       WHEN 'burnin' THEN %(burnin)s ELSE %(default)s END)
  AND id <> ALL (%(skip)s)
ORDER BY last_heartbeat_at
LIMIT %(limit)s
"""
)

LOCK_EXPIRED_ROWS: LiteralString = EXPIRED_ROWS + _OR_SKIP
LOCK_SILENT_ROWS: LiteralString = SILENT_ROWS + _OR_SKIP

COUNT_ROWS_LEFT_ALONE = """
SELECT count(*) AS rows FROM {table}
WHERE status = 'processing' AND lease_expires_at IS NULL AND last_heartbeat_at IS NULL
"""

# One statement per status: a CASE of two words would not fit a status column that is an enum.
REQUEUE_ROWS = """
UPDATE {table}
SET status = 'queued', locked_by = NULL, lease_token = NULL, lease_expires_at = NULL,
    next_earliest_run_at = now() + make_interval(secs => %(backoff)s)
WHERE id = ANY (%(keys)s) AND status = 'processing'
"""

FAIL_ROWS = """
UPDATE {table}
SET status = 'failed', locked_by = NULL, lease_token = NULL, lease_expires_at = NULL,
    fail_code = %(code)s, fail_reason = %(reason)s
WHERE id = ANY (%(keys)s) AND status = 'processing'
"""

# The id comes from the table, in its own type; `data` is one object, keyed by the id as text.
APPEND_EVENTS = """
INSERT INTO job_events (job_id, data, created_at)
SELECT job.id, %(data)s::jsonb -> job.id::text, now()
FROM {table} AS job WHERE job.id = ANY (%(keys)s)
"""

_CLAIM_HEAD = """
WITH next AS MATERIALIZED (
    SELECT id FROM {table}
    WHERE status = 'queued' AND coalesce(next_earliest_run_at, '-infinity') <= now()
      AND """
# Ordering by the stage too tells the planner that the index has the order already.
_CLAIM_TAIL = """
    ORDER BY stage, coalesce(next_earliest_run_at, '-infinity'), id
    LIMIT 1
    FOR UPDATE SKIP LOCKED
), taken AS (
    UPDATE {table} AS job
    SET status = 'processing', stage = %(stage)s, locked_by = %(worker_id)s,
        lease_token = %(token)s, attempt_count = coalesce(job.attempt_count, 0) + 1,
        last_heartbeat_at = now(), lease_expires_at = now() + make_interval(secs => %(lease)s)
    FROM next WHERE job.id = next.id
    RETURNING job.*
), event AS (
    INSERT INTO job_events (job_id, data, created_at)
    SELECT id, jsonb_build_object(
        'type', 'worker:claimed', 'table', %(table)s::text, 'details', jsonb_build_object(
            'job_id', id::text, 'stage', stage, 'attempt_count', attempt_count,
            'locked_by', locked_by, 'lease_token', lease_token,
            'lease_expires_at', lease_expires_at)), now()
    FROM taken
)
SELECT * FROM taken
"""

CLAIM_STAGED_ROW: LiteralString = _CLAIM_HEAD + "stage = %(stage)s" + _CLAIM_TAIL
CLAIM_UNSTAGED_ROW: LiteralString = _CLAIM_HEAD + "stage IS NULL" + _CLAIM_TAIL

EXTEND_LEASE = """
UPDATE {table}
SET last_heartbeat_at = now(), lease_expires_at = now() + make_interval(secs => %(lease)s)
WHERE id = %(key)s AND status = 'processing' AND lease_token = %(token)s
"""

_APPEND_EVENT = """
    WHERE id = %(key)s AND status = 'processing' AND lease_token = %(token)s
    RETURNING id
)
INSERT INTO job_events (job_id, data, created_at)
SELECT id, jsonb_build_object(
    'type', %(type)s::text, 'table', %(table)s::text, 'details', %(details)s::jsonb), now()
FROM ended
"""

# The token stays as a receipt, by which a call repeated after a lost answer finds it done.
_COMPLETE = """
WITH ended AS (
    UPDATE {table} SET status = 'done', locked_by = NULL, lease_expires_at = NULL"""

_FAIL = """
WITH ended AS (
    UPDATE {table}
    SET status = 'failed', locked_by = NULL, lease_expires_at = NULL,
        fail_code = %(code)s, fail_reason = %(reason)s"""

_RETRY = """
WITH ended AS (
    UPDATE {table}
    SET status = 'queued', locked_by = NULL, lease_expires_at = NULL, lease_token = NULL,
        next_earliest_run_at = now() + make_interval(secs => %(backoff)s)"""

COMPLETE_JOB: LiteralString = _COMPLETE + _APPEND_EVENT
FAIL_JOB: LiteralString = _FAIL + _APPEND_EVENT
RETRY_JOB: LiteralString = _RETRY + _APPEND_EVENT

STATUS_BY_RECEIPT = """
SELECT status::text AS status FROM {table} WHERE id = %(key)s AND lease_token = %(token)s
"""

# For one transaction only, so that it also holds behind a pooler.
LIMIT_WAITS = """
SELECT set_config('statement_timeout', %(statement)s, true),
       set_config('lock_timeout', %(lock)s, true),
       set_config('idle_in_transaction_session_timeout', %(idle)s, true)
"""


def compose(statement: LiteralString, table: str, **parts: sql.Composable) -> sql.Composed:
    """The only place where a name becomes text of a query: always quoted."""
    return sql.SQL(statement).format(table=sql.Identifier(table), **parts)
