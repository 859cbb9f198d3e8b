"""Statements that page through jobs, and the one that cancels them."""

from __future__ import annotations

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
