"""Every statement of the queue, by the name of what it does.

Tables are put in by `backend.Session`, always qualified. `{now}` is the database's clock in
milliseconds (a subquery, so that an index can be searched with it) or that of a test. A write on
leased jobs names the token and the expected status: no row changed means that the lease was lost.
Rows are locked in the order of ids where a statement may meet others; where it meets them all the
same, the deadlock is found by the server and the transaction repeated.
"""

from __future__ import annotations

from dataclasses import fields

from embed_pipeline.domain.job import EmbedJob

CLOCK_MS = "(SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)"
TEST_CLOCK_MS = "%(now)s::bigint"
NOW = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now"

_COLUMNS = [field.name for field in fields(EmbedJob)]
_JOB = ", ".join(f"job.{name}" for name in _COLUMNS)
_FIXED = ("id", "entity_uid", "model", "version", "created_at", "max_attempts")
_SAVED = ", ".join(f"{name} = new.{name}" for name in _COLUMNS if name not in _FIXED)

_HELD = """job.id = ANY (%(job_ids)s) AND job.status = 'processing'
    AND job.lock_owner = %(owner)s AND job.lease_token = %(token)s"""

_UNLOCKED = "lock_owner = NULL, lock_until = NULL, lease_token = NULL"
_NO_ERROR = "error = NULL, error_type = NULL, error_category = NULL, error_stack = NULL"
_FRESH_START = f"""attempts = 0, recoveries = 0, recovered_at = NULL, strikes = 0,
    processed_at = NULL, {_NO_ERROR}, fail_code = NULL, fail_reason = NULL"""
_BACK_TO_PENDING = f"status = 'pending', {_UNLOCKED}, force = force OR again = 2, again = 0"

_EACH_RANK_AND_TIER = "generate_series(-9, 0) AS r CROSS JOIN generate_series(0, 2) AS t"
_OF_RANK_AND_TIER = """job.status = 'pending' AND job.model = %(model)s
    AND job.rank = r AND job.tier = t"""

LOCK_BY_KEYS = f"""
SELECT {_JOB} FROM {{embed_job}} AS job
JOIN unnest(%(uids)s::text[], %(models)s::text[], %(versions)s::text[]) AS wanted(uid, model, version)
  ON job.entity_uid = wanted.uid AND job.model = wanted.model AND job.version = wanted.version
ORDER BY job.id FOR UPDATE OF job
"""

INSERT_JOBS = """
INSERT INTO {embed_job} (id, entity_uid, model, version, status, priority, created_at, available_at,
                         max_attempts, force)
SELECT id, uid, model, version, 'pending', priority, %(at)s, %(at)s, %(max_attempts)s, force
FROM unnest(%(ids)s::text[], %(uids)s::text[], %(models)s::text[], %(versions)s::text[],
            %(priorities)s::smallint[], %(forces)s::boolean[])
    AS new(id, uid, model, version, priority, force)
ON CONFLICT (entity_uid, model, version) DO NOTHING
RETURNING id
"""

SAVE_JOBS = f"""
UPDATE {{embed_job}} AS job SET {_SAVED}
FROM json_populate_recordset(NULL::{{embed_job}}, %(jobs)s::json) AS new
WHERE job.id = new.id
"""

# A seek per rank and tier: one scan over all would walk the deferred jobs of higher priorities.
# Heads that another lease takes just now are passed over, the others are kept for this one.
VIEW_FOR_LEASE = f"""
SELECT
    (SELECT coalesce(json_object_agg(name, value), '{{{{}}}}') FROM {{shared_state}}
     WHERE name = ANY (%(documents)s) AND value IS NOT NULL) AS documents,
    (SELECT coalesce(json_agg(json_build_array(r, t, head.due)), '[]')
     FROM {_EACH_RANK_AND_TIER} CROSS JOIN LATERAL (
        SELECT job.available_at AS due FROM {{embed_job}} AS job
        WHERE {_OF_RANK_AND_TIER} AND job.available_at <= {{now}}
        ORDER BY job.available_at, job.id LIMIT 1 FOR UPDATE SKIP LOCKED
     ) AS head) AS heads,
    EXISTS (SELECT FROM {{embed_job}} WHERE status = 'processing'
            AND lock_owner = %(owner)s AND lease_token = %(token)s) AS is_held
"""

LEASED_BEFORE = f"""
SELECT {_JOB} FROM {{embed_job}} AS job
WHERE job.status = 'processing' AND job.lock_owner = %(owner)s AND job.lease_token = %(token)s
"""

# The ranks come in order and the limit ends the loop over them, so no row is locked in vain.
TAKE_JOBS = f"""
WITH due AS MATERIALIZED (
    SELECT job.id FROM unnest(%(ranks)s::smallint[]) AS r CROSS JOIN LATERAL (
        SELECT id FROM {{embed_job}} AS job
        WHERE job.status = 'pending' AND job.model = %(model)s AND job.rank = r
          AND job.tier = %(tier)s AND job.available_at <= {{now}}
        ORDER BY job.available_at, job.id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
    ) AS job LIMIT %(limit)s
)
UPDATE {{embed_job}} AS job
SET status = 'processing', lock_owner = %(owner)s, lease_token = %(token)s,
    lock_until = {{now}} + %(duration)s, last_heartbeat_at = {{now}}
FROM due WHERE job.id = due.id
RETURNING {_JOB}
"""

EXTEND_JOBS = f"""
UPDATE {{embed_job}} AS job SET lock_until = {{now}} + %(duration)s, last_heartbeat_at = {{now}}
WHERE {_HELD} RETURNING job.id
"""

RELEASE_JOBS = f"UPDATE {{embed_job}} AS job SET {_BACK_TO_PENDING} WHERE {_HELD} RETURNING job.id"

DEFER_JOBS = f"""
UPDATE {{embed_job}} AS job SET {_BACK_TO_PENDING}, strikes = strikes + %(strike)s::int,
    available_at = greatest(available_at, {{now}} + %(delay)s), error = %(error)s,
    error_type = %(error_type)s, error_category = %(error_category)s, error_stack = %(error_stack)s
WHERE {_HELD} RETURNING job.id
"""

COMPLETE_JOBS = f"""
UPDATE {{embed_job}} AS job
SET status = 'completed', processed_at = {{now}}, done_token = %(token)s, force = false,
    {_UNLOCKED}, {_NO_ERROR}, fail_code = NULL, fail_reason = NULL
WHERE {_HELD} AND again = 0 RETURNING job.id
"""

COMPLETE_AND_REPEAT_JOBS = f"""
UPDATE {{embed_job}} AS job
SET status = 'pending', available_at = {{now}}, done_token = %(token)s, force = (again = 2),
    again = 0, {_UNLOCKED}, {_FRESH_START}
WHERE {_HELD} RETURNING job.id
"""

COMPLETED_BEFORE = """
SELECT id FROM {embed_job} WHERE id = ANY (%(job_ids)s) AND done_token = %(token)s
"""

LOCK_HELD = f"SELECT {_JOB} FROM {{embed_job}} AS job WHERE {_HELD} ORDER BY job.id FOR UPDATE"

# A row that a heartbeat or another recovery has locked is no prey.
LOCK_STALE = f"""
SELECT {_JOB} FROM {{embed_job}} AS job
WHERE job.status = 'processing' AND coalesce(job.lock_until, 0) < {{now}}
ORDER BY coalesce(job.lock_until, 0) LIMIT %(limit)s FOR UPDATE SKIP LOCKED
"""

LOCK_OWNED = f"""
SELECT {_JOB} FROM {{embed_job}} AS job WHERE job.status = 'processing' AND job.lock_owner = %(owner)s
ORDER BY job.lease_token LIMIT %(limit)s FOR UPDATE
"""

RETRY_FAILED = f"""
UPDATE {{embed_job}} SET status = 'pending', available_at = {{now}}, again = 0, {_FRESH_START}
WHERE id IN (
    SELECT id FROM {{embed_job}}
    WHERE status = 'failed' AND (%(category)s::text IS NULL OR error_category = %(category)s)
    ORDER BY processed_at NULLS FIRST, id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
) RETURNING id
"""

CANCEL_JOBS = """
DELETE FROM {embed_job} WHERE id IN (
    SELECT id FROM {embed_job} WHERE status = 'pending'
    ORDER BY model, rank, tier, available_at, id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
) RETURNING id
"""

CANCEL_JOBS_OF_ENTITY = """
DELETE FROM {embed_job} WHERE id IN (
    SELECT id FROM {embed_job} WHERE status = 'pending' AND entity_uid = %(uid)s
    LIMIT %(limit)s FOR UPDATE SKIP LOCKED
) RETURNING id
"""

DELETE_ENDED = """
DELETE FROM {embed_job} WHERE id IN (
    SELECT id FROM {embed_job} WHERE status IN ('completed', 'failed') AND processed_at < %(before)s
    ORDER BY processed_at NULLS FIRST, id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
) RETURNING status
"""

GET_JOB = f"SELECT {_JOB} FROM {{embed_job}} AS job WHERE id = %(id)s"

NEXT_DUE = f"""
SELECT min((
    SELECT job.available_at FROM {{embed_job}} AS job WHERE {_OF_RANK_AND_TIER}
    ORDER BY job.available_at LIMIT 1)) AS due
FROM {_EACH_RANK_AND_TIER}
"""

HAS_STALE = """
SELECT EXISTS (SELECT FROM {embed_job}
               WHERE status = 'processing' AND coalesce(lock_until, 0) < {now}) AS found
"""

# Hops from owner to owner along the index instead of reading all their jobs.
LIVE_OWNERS = """
WITH RECURSIVE owners(name) AS (
    SELECT min(lock_owner) FROM {embed_job} WHERE status = 'processing'
    UNION ALL
    SELECT (SELECT min(lock_owner) FROM {embed_job}
            WHERE status = 'processing' AND lock_owner > owners.name)
    FROM owners WHERE owners.name IS NOT NULL
)
SELECT name FROM owners WHERE EXISTS (
    SELECT FROM {embed_job}
    WHERE status = 'processing' AND lock_owner = owners.name AND lock_until >= {now})
"""

# Each count reads one partial index, not the table; there is none on completed jobs alone.
COUNT_BY_STATUS = """
SELECT (SELECT count(*) FROM {embed_job} WHERE status = 'pending') AS pending,
       (SELECT count(*) FROM {embed_job} WHERE status = 'processing') AS processing,
       (SELECT count(*) FROM {embed_job} WHERE status IN ('completed', 'failed')) AS ended,
       (SELECT count(*) FROM {embed_job} WHERE status = 'failed') AS failed
"""

_LATEST_FIRST = "ORDER BY job.processed_at DESC NULLS LAST, job.id DESC LIMIT %(limit)s"

FAILED_JOBS = f"""
SELECT {_JOB} FROM {{embed_job}} AS job
WHERE job.status = 'failed' AND (%(category)s::text IS NULL OR job.error_category = %(category)s)
{_LATEST_FIRST}
"""

_PAGE = """AND (job.processed_at, job.id) > (%(ended_at)s, %(id)s)
ORDER BY job.processed_at NULLS FIRST, job.id LIMIT %(limit)s"""

ENDED_JOBS = f"""
SELECT {_JOB} FROM {{embed_job}} AS job
WHERE job.status IN ('completed', 'failed')
  AND (%(status)s::text IS NULL OR job.status = %(status)s) {_PAGE}
"""

# Few among many, so they have an index of their own.
ENDED_BADLY = f"SELECT {_JOB} FROM {{embed_job}} AS job WHERE job.status = 'failed' {_PAGE}"

# A job that failed before there was a code has none.
_PARKED = "job.status = 'failed' AND job.fail_code IS DISTINCT FROM %(gone)s"
PARKED_JOBS = f"SELECT {_JOB} FROM {{embed_job}} AS job WHERE {_PARKED} {_LATEST_FIRST}"
COUNT_PARKED = f"SELECT count(*) AS found FROM {{embed_job}} AS job WHERE {_PARKED}"

WALK_JOBS = f"""
SELECT {_JOB} FROM {{embed_job}} AS job WHERE job.id > %(after)s ORDER BY job.id LIMIT %(limit)s
"""

COUNT_AHEAD = """
SELECT count(*) AS found FROM (
    SELECT FROM {embed_job} WHERE status = 'pending' AND model = %(model)s AND id <> %(id)s
      AND (rank < %(rank)s OR (rank = %(rank)s AND available_at <= %(available_at)s))
    LIMIT %(limit)s) AS ahead
"""

JOBS_OF_ENTITY = f"""
SELECT {_JOB} FROM {{embed_job}} AS job WHERE job.entity_uid = %(uid)s
ORDER BY job.created_at DESC, job.id DESC LIMIT %(limit)s
"""

READ_STATES = """
SELECT name, value FROM {shared_state}
WHERE (%(names)s::text[] IS NULL OR name = ANY (%(names)s)) AND value IS NOT NULL
"""

# The clock is read behind the lock: outside of the statement that waits for it.
LOCK_STATE = f"""
WITH locked AS MATERIALIZED (
    SELECT value FROM {{shared_state}} WHERE name = %(name)s FOR UPDATE
)
SELECT value, ({NOW}) AS now FROM locked
"""

CREATE_STATE = "INSERT INTO {shared_state} (name) VALUES (%(name)s) ON CONFLICT DO NOTHING"

WRITE_LEDGER = """
WITH documents AS (
    INSERT INTO {shared_state} (name, value)
    SELECT * FROM unnest(%(names)s::text[], %(values)s::text[])
    ON CONFLICT (name) DO UPDATE SET value = excluded.value
), counters AS (
    INSERT INTO {counter} AS total (name, slot, value)
    SELECT name, pg_backend_pid() %% 16, amount
    FROM unnest(%(counters)s::text[], %(amounts)s::bigint[]) AS added(name, amount)
    ON CONFLICT (name, slot) DO UPDATE SET value = total.value + excluded.value
)
INSERT INTO {event} (at, kind, owner, reason, job_ids, facts)
SELECT {now}, kind, owner, reason, job_ids, facts
FROM json_to_recordset(%(events)s::json)
    AS new(kind text, owner text, reason text, job_ids json, facts json)
"""

READ_COUNTERS = "SELECT name, sum(value)::bigint AS value FROM {counter} GROUP BY name ORDER BY name"

RECENT_EVENTS = """
SELECT at, kind, owner, reason, job_ids, facts FROM {event}
WHERE %(kind)s::text IS NULL OR kind = %(kind)s ORDER BY seq DESC LIMIT %(limit)s
"""

DELETE_EVENTS = """
DELETE FROM {event} WHERE seq IN (
    SELECT seq FROM {event} WHERE at < %(before)s ORDER BY at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
) RETURNING seq
"""
