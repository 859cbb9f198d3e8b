"""Statements that read jobs, one by one or page by page."""

from __future__ import annotations

GET_JOB = "SELECT * FROM embed_job WHERE id = :id"

LATEST_FAILED = """
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

ENDED_JOBS = """
SELECT * FROM embed_job
WHERE status IN ('completed', 'failed') AND (processed_at, id) > (:ended_at, :id)
  AND (:status IS NULL OR status = :status)
ORDER BY processed_at, id LIMIT :limit
"""

# Few among many, so they have an index of their own.
FAILED_JOBS = """
SELECT * FROM embed_job
WHERE status = 'failed' AND (processed_at, id) > (:ended_at, :id)
ORDER BY processed_at, id LIMIT :limit
"""

# A job that failed before there was a code has none.
_PARKED = "status = 'failed' AND fail_code IS NOT :but"

PARKED_JOBS = f"""
SELECT * FROM embed_job WHERE {_PARKED}
ORDER BY processed_at DESC, id DESC LIMIT :limit
"""

COUNT_PARKED = f"SELECT count(*) AS parked FROM embed_job WHERE {_PARKED}"

WALK_JOBS = "SELECT * FROM embed_job WHERE id > :after ORDER BY id LIMIT :limit"

COUNT_AHEAD = """
SELECT count(*) AS ahead FROM (
    SELECT 1 FROM embed_job
    WHERE status = 'pending' AND model = :model AND id <> :id
      AND (rank < :rank OR (rank = :rank AND available_at <= :available_at))
    LIMIT :limit
)
"""

JOBS_OF_ENTITY = """
SELECT * FROM embed_job WHERE entity_uid = :entity_uid
ORDER BY created_at DESC, id DESC LIMIT :limit
"""
