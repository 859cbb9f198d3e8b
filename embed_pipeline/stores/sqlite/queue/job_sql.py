"""Every statement on jobs, by the name of what it does.

Lists travel as one JSON parameter, so that a statement has one text and one plan for any length.
A write on leased jobs names the token and the expected status: no row changed means that the
lease was lost. `:now` is the store's clock in milliseconds. The f-strings below are filled with
the constant fragments of this module and nothing else.
"""

from __future__ import annotations

_HELD = """
    id IN (SELECT value FROM json_each(:job_ids))
    AND status = 'processing' AND lock_owner = :owner AND lease_token = :token
"""

_UNLOCKED = "lock_owner = NULL, lock_until = NULL, lease_token = NULL"

_BACK_TO_PENDING = f"""
    status = 'pending', {_UNLOCKED},
    force = max(force, again = 2), again = 0
"""

_FRESH_START = """
    attempts = 0, recoveries = 0, recovered_at = NULL, strikes = 0, processed_at = NULL,
    error = NULL, error_type = NULL, error_category = NULL, error_stack = NULL,
    fail_code = NULL, fail_reason = NULL
"""

FIND_BY_KEYS = """
SELECT job.seq, job.id, job.entity_uid, job.model, job.version, job.status, job.fail_code
FROM json_each(:keys) AS wanted
JOIN embed_job AS job
  ON job.entity_uid = wanted.value ->> 0
 AND job.model = wanted.value ->> 1
 AND job.version = wanted.value ->> 2
"""

INSERT_JOB = """
INSERT INTO embed_job (id, entity_uid, model, version, status, priority, created_at, available_at,
                       max_attempts, force)
VALUES (:id, :entity_uid, :model, :version, 'pending', :priority, :now, :now, :max_attempts, :force)
"""

REVIVE_JOB = f"""
UPDATE embed_job
SET status = 'pending', available_at = :now, priority = :priority, force = :force, again = 0,
    done_token = NULL, {_FRESH_START}
WHERE seq = :seq
"""

EXPEDITE_JOB = """
UPDATE embed_job
SET force = 1, available_at = min(available_at, :now), priority = max(priority, :priority)
WHERE seq = :seq
"""

REPEAT_JOB = """
UPDATE embed_job SET again = max(again, CASE WHEN :force THEN 2 ELSE 1 END) WHERE seq = :seq
"""

# A seek per rank and tier: with one ordered scan over all ranks, a higher priority full of
# deferred jobs would be walked from end to end.
_EACH_RANK_AND_TIER = """
    (VALUES (-9), (-8), (-7), (-6), (-5), (-4), (-3), (-2), (-1), (0)) AS ranks
    CROSS JOIN (VALUES (0), (1), (2)) AS tiers
"""

DUE_HEADS = f"""
SELECT rank, tier, due FROM (
    SELECT ranks.column1 AS rank, tiers.column1 AS tier, (
        SELECT available_at FROM embed_job
        WHERE status = 'pending' AND model = :model AND rank = ranks.column1
          AND tier = tiers.column1 AND available_at <= :now
        ORDER BY available_at LIMIT 1
    ) AS due
    FROM {_EACH_RANK_AND_TIER}
) WHERE due IS NOT NULL
"""

NEXT_DUE = f"""
SELECT min((
    SELECT available_at FROM embed_job
    WHERE status = 'pending' AND model = :model AND rank = ranks.column1 AND tier = tiers.column1
    ORDER BY available_at LIMIT 1
)) AS due
FROM {_EACH_RANK_AND_TIER}
"""

LEASE_JOBS = """
UPDATE embed_job
SET status = 'processing', lock_owner = :owner, lock_until = :until, lease_token = :token,
    last_heartbeat_at = :now
WHERE seq IN (
    SELECT seq FROM embed_job
    WHERE status = 'pending' AND model = :model AND rank = :rank AND tier = :tier
      AND available_at <= :now
    ORDER BY available_at, seq LIMIT :limit
) AND status = 'pending'
RETURNING *
"""

FORMERLY_LEASED = """
SELECT * FROM embed_job
WHERE status = 'processing' AND lease_token = :token AND lock_owner = :owner
"""

EXTEND_JOBS = f"""
UPDATE embed_job SET lock_until = :until, last_heartbeat_at = :now WHERE {_HELD} RETURNING id
"""

RELEASE_JOBS = f"""
UPDATE embed_job SET {_BACK_TO_PENDING} WHERE {_HELD} RETURNING id
"""

DEFER_JOBS = f"""
UPDATE embed_job
SET {_BACK_TO_PENDING},
    strikes = strikes + :strike, available_at = max(available_at, :available_at),
    error = :error, error_type = :error_type, error_category = :error_category,
    error_stack = :error_stack
WHERE {_HELD}
RETURNING id
"""

COMPLETE_JOBS = f"""
UPDATE embed_job
SET status = 'completed', processed_at = :now, done_token = :token, force = 0, {_UNLOCKED},
    error = NULL, error_type = NULL, error_category = NULL, error_stack = NULL,
    fail_code = NULL, fail_reason = NULL
WHERE {_HELD} AND again = 0
RETURNING id
"""

COMPLETE_AND_REPEAT_JOBS = f"""
UPDATE embed_job
SET status = 'pending', available_at = :now, done_token = :token, force = (again = 2), again = 0,
    {_UNLOCKED}, {_FRESH_START}
WHERE {_HELD}
RETURNING id
"""

FORMERLY_DONE = """
SELECT id FROM embed_job
WHERE id IN (SELECT value FROM json_each(:job_ids)) AND done_token = :token
"""

HELD_JOBS = f"SELECT * FROM embed_job WHERE {_HELD}"

RETRY_LATER = f"""
UPDATE embed_job
SET {_BACK_TO_PENDING}, attempts = attempts + 1, available_at = :available_at,
    error = :error, error_type = :error_type, error_category = :error_category,
    error_stack = :error_stack
WHERE seq = :seq
"""

FAIL_JOB = f"""
UPDATE embed_job
SET status = 'failed', processed_at = :now, {_UNLOCKED}, force = 0, again = 0,
    attempts = attempts + :charge,
    error = :error, error_type = :error_type, error_category = :error_category,
    error_stack = :error_stack, fail_code = :fail_code, fail_reason = :fail_reason
WHERE seq = :seq
"""

START_AFRESH = f"""
UPDATE embed_job
SET {_BACK_TO_PENDING}, available_at = :now, {_FRESH_START}
WHERE seq = :seq
"""

STALE_JOBS = """
SELECT * FROM (
    SELECT * FROM embed_job WHERE status = 'processing' AND lock_until IS NULL
    UNION ALL
    SELECT * FROM embed_job WHERE status = 'processing' AND lock_until < :now
) LIMIT :limit
"""

JOBS_OF_OWNER = """
SELECT * FROM embed_job WHERE status = 'processing' AND lock_owner = :owner LIMIT :limit
"""

RECOVER_JOB = f"""
UPDATE embed_job
SET {_BACK_TO_PENDING}, available_at = :available_at,
    recoveries = :recoveries, recovered_at = :now, strikes = strikes + 1
WHERE seq = :seq
"""

COUNT_RECOVERY = """
UPDATE embed_job SET recoveries = :recoveries, recovered_at = :now, strikes = strikes + 1
WHERE seq = :seq
"""

RETRY_FAILED = f"""
UPDATE embed_job
SET status = 'pending', available_at = :now, again = 0, {_FRESH_START}
WHERE seq IN (
    SELECT seq FROM embed_job
    WHERE status = 'failed' AND (:category IS NULL OR error_category = :category)
    ORDER BY processed_at, seq LIMIT :limit
) AND status = 'failed'
RETURNING id
"""

DELETE_ENDED = """
DELETE FROM embed_job
WHERE seq IN (
    SELECT seq FROM embed_job
    WHERE status IN ('completed', 'failed') AND processed_at < :cutoff LIMIT :limit
)
RETURNING status
"""

GET_JOB = "SELECT * FROM embed_job WHERE id = :id"

FAILED_JOBS = """
SELECT * FROM embed_job
WHERE status = 'failed' AND (:category IS NULL OR error_category = :category)
ORDER BY processed_at DESC, seq DESC LIMIT :limit
"""

# Each count reads one partial index, not the table; there is none on completed jobs alone.
COUNT_BY_STATUS = """
SELECT
    (SELECT count(*) FROM embed_job WHERE status = 'pending') AS pending,
    (SELECT count(*) FROM embed_job WHERE status = 'processing') AS processing,
    (SELECT count(*) FROM embed_job WHERE status IN ('completed', 'failed')) AS ended,
    (SELECT count(*) FROM embed_job WHERE status = 'failed') AS failed
"""

# Hops from owner to owner along the index instead of reading all their jobs.
LIVE_OWNERS = """
WITH RECURSIVE owners(name) AS (
    SELECT min(lock_owner) FROM embed_job WHERE status = 'processing'
    UNION ALL
    SELECT (SELECT min(lock_owner) FROM embed_job
            WHERE status = 'processing' AND lock_owner > owners.name)
    FROM owners WHERE owners.name IS NOT NULL
)
SELECT name FROM owners
WHERE EXISTS (SELECT 1 FROM embed_job
              WHERE status = 'processing' AND lock_owner = owners.name AND lock_until >= :now)
"""
