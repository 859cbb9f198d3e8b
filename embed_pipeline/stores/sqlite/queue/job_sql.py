"""Every statement on jobs, by the name of what it does.

Lists travel as one JSON parameter, so that a statement has one text and one plan for any length.
A write on leased jobs names the token and the expected status: no row changed means that the
lease was lost. `:now` is the store's clock in milliseconds. The f-strings below are filled with
the constant fragments of this module and nothing else.
"""

from __future__ import annotations

from functools import lru_cache

from embed_pipeline.domain.isolation import Tier
from embed_pipeline.domain.job import RANKS

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
SELECT job.entity_uid, job.model, job.version,
       job.id, job.status, job.fail_code, job.priority, job.available_at, job.again
FROM json_each(:keys) AS wanted
JOIN embed_job AS job
  ON job.entity_uid = wanted.value ->> 0
 AND job.model = wanted.value ->> 1
 AND job.version = wanted.value ->> 2
"""

INSERT_JOB = """
INSERT INTO embed_job (id, entity_uid, model, version, status, priority, created_at, available_at,
                       max_attempts, force)
VALUES (?, ?, ?, ?, 'pending', ?, ?, ?, ?, ?)
"""


@lru_cache
def save_jobs(names: tuple[str, ...]) -> str:
    """Sets these fields of a job, then comes its id; few sets of names ever occur."""
    assignments = ", ".join(f"{name} = ?" for name in names)
    return f"UPDATE embed_job SET {assignments} WHERE id = ?"


# A seek per rank and tier: with one ordered scan over all ranks, a higher priority full of
# deferred jobs would be walked from end to end.
_RANKS = ", ".join(f"({rank})" for rank in RANKS)
_TIERS = ", ".join(f"({tier:d})" for tier in Tier)
_EACH_RANK_AND_TIER = f"(VALUES {_RANKS}) AS ranks CROSS JOIN (VALUES {_TIERS}) AS tiers"

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

CANCEL_JOBS = """
DELETE FROM embed_job
WHERE seq IN (SELECT seq FROM embed_job WHERE status = 'pending' LIMIT :limit)
RETURNING id
"""

CANCEL_JOBS_OF_ENTITY = """
DELETE FROM embed_job
WHERE seq IN (
    SELECT seq FROM embed_job WHERE entity_uid = :entity_uid AND status = 'pending' LIMIT :limit
)
RETURNING id
"""

DELETE_EVENTS = """
DELETE FROM event WHERE seq IN (SELECT seq FROM event WHERE at < :cutoff LIMIT :limit)
RETURNING seq
"""
