"""Statements that page through jobs, and those that cancel them."""

from __future__ import annotations

from embed_pipeline.stores.neo4j.queue.cypher.parts import BY_END, BY_TURN, HAS_ID, LOCK

# Four seeks that each stop at the limit: an index gives one status in order, and jobs that ended
# in the very millisecond where the page before stopped go by their id.
_IN_ORDER = "ORDER BY job.status, job.processed_at, job.id LIMIT $limit"

ENDED_JOBS = f"""
UNWIND $statuses AS status
CALL (status) {{
    MATCH (job:EmbedJob) {BY_END}
    WHERE job.status = status AND job.processed_at = $ended_at AND job.id > $id
    RETURN job {_IN_ORDER}
  UNION ALL
    MATCH (job:EmbedJob) {BY_END}
    WHERE job.status = status AND job.processed_at > $ended_at AND job.id IS NOT NULL
      AND {HAS_ID}
    RETURN job {_IN_ORDER}
}}
WITH job ORDER BY job.processed_at, job.id LIMIT $limit
RETURN properties(job) AS job
"""

_PARKED = f"""
MATCH (job:EmbedJob) {BY_END}
WHERE job.status = 'failed' AND job.processed_at IS NOT NULL AND job.id IS NOT NULL
  AND {HAS_ID} AND coalesce(job.fail_code, '') <> $but
"""

PARKED_JOBS = f"""
{_PARKED}
WITH job ORDER BY job.status DESC, job.processed_at DESC, job.id DESC LIMIT $limit
RETURN properties(job) AS job
"""

COUNT_PARKED = f"{_PARKED} RETURN count(job) AS parked"

WALK_JOBS = """
MATCH (job:EmbedJob) WHERE job.id > $after
WITH job ORDER BY job.id LIMIT $limit
RETURN properties(job) AS job
"""

# A seek per rank and tier, as a lease does it.
COUNT_AHEAD = f"""
CALL () {{
    UNWIND range(-9, $rank) AS rank
    UNWIND range(0, 2) AS tier
    WITH rank, tier, CASE rank WHEN $rank THEN $available_at ELSE 9223372036854775807 END AS end
    CALL (rank, tier, end) {{
        MATCH (job:EmbedJob) {BY_TURN}
        WHERE job.status = 'pending' AND job.model = $model AND job.rank = rank AND job.tier = tier
          AND job.available_at <= end
          AND job.id <> $id
        RETURN job LIMIT $limit
    }}
    RETURN job LIMIT $limit
}}
RETURN count(job) AS ahead
"""

_OF_ENTITY = """
MATCH (job:EmbedJob) USING INDEX SEEK job:EmbedJob(entity_uid, model, version)
WHERE job.entity_uid = $entity_uid AND job.model IS NOT NULL AND job.version IS NOT NULL
"""

JOBS_OF_ENTITY = f"""
{_OF_ENTITY} AND {HAS_ID}
WITH job ORDER BY job.created_at DESC, job.id DESC LIMIT $limit
RETURN properties(job) AS job
"""

# No lease chooses while its lock node is held, so none meets a job that is about to go.
_ALONE = "MATCH (lock:QueueLock {name: 'lease'}) SET lock._lock = true REMOVE lock._lock"

_DELETED = f"""
WITH job LIMIT $limit
WITH job ORDER BY job.id
{LOCK}
WITH job WHERE job.status = 'pending'
WITH job, toStringOrNull(job.id) AS id
DETACH DELETE job
RETURN collect(id) AS done
"""

CANCEL_JOBS = f"""
{_ALONE}
WITH lock
CALL () {{
    MATCH (job:EmbedJob) {BY_TURN}
    WHERE job.status = 'pending' AND job.model IS NOT NULL AND job.rank IS NOT NULL
      AND job.tier IS NOT NULL AND job.available_at IS NOT NULL
    RETURN job LIMIT $limit
}}
{_DELETED}
"""

CANCEL_JOBS_OF_ENTITY = f"""
{_ALONE}
WITH lock
CALL () {{
    {_OF_ENTITY} AND job.status = 'pending'
    RETURN job LIMIT $limit
}}
{_DELETED}
"""
