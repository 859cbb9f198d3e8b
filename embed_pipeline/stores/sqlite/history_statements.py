"""Statements that page through jobs, and the one that cancels them."""

from __future__ import annotations

ENDED_JOBS = """
SELECT * FROM embed_job
WHERE status IN ('completed', 'failed') AND (processed_at, id) > (:ended_at, :id)
ORDER BY processed_at, id LIMIT :limit
"""

WALK_JOBS = "SELECT * FROM embed_job WHERE id > :after ORDER BY id LIMIT :limit"

WALK_FAILED_JOBS = """
SELECT * FROM embed_job WHERE status = 'failed' AND id > :after ORDER BY id LIMIT :limit
"""

# Passes over jobs of other statuses: an index on the status of all jobs would have to be kept by
# every lease and completion, which then take more than twice as long. A whole walk is one scan.
WALK_JOBS_OF_STATUS = """
SELECT * FROM embed_job WHERE id > :after AND status = :status ORDER BY id LIMIT :limit
"""

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
