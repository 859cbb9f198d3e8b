"""Statements that read jobs, one by one or page by page."""

from __future__ import annotations

from embed_pipeline.stores.encoding import FIRST_MS, LAST_MS
from embed_pipeline.stores.neo4j.queue.cypher.parts import (
    BY_END,
    BY_END_OF_LEASE,
    BY_HOLDER,
    BY_TURN,
    EACH_RANK,
    EACH_TIER,
    FIRST_RANK,
    HAS_ID,
    IN_TURN,
    NOW,
    OF_ENTITY,
)

# A time of any other type would come first, and hide all that are due.
NEXT_DUE = f"""
{EACH_RANK}
{EACH_TIER}
CALL (rank, tier) {{
    MATCH (job:EmbedJob) {BY_TURN}
    WHERE job.status = 'pending' AND job.model = $model AND job.rank = rank AND job.tier = tier
      AND {FIRST_MS} <= job.available_at <= {LAST_MS} AND {HAS_ID}
    RETURN job.available_at AS due {IN_TURN} LIMIT 1
}}
RETURN min(due) AS due
"""

GET_JOB = "MATCH (job:EmbedJob {id: $id}) RETURN properties(job) AS job"

LATEST_FAILED = f"""
MATCH (job:EmbedJob) {BY_END}
WHERE job.status = 'failed' AND job.processed_at IS NOT NULL AND job.id IS NOT NULL
  AND {HAS_ID} AND ($category IS NULL OR job.error_category = $category)
WITH job ORDER BY job.status DESC, job.processed_at DESC, job.id DESC LIMIT $limit
RETURN properties(job) AS job
"""

# Each status has an index that holds no other.
COUNT_BY_STATUS = f"""
CALL () {{
    MATCH (job:EmbedJob) {BY_TURN}
    WHERE job.status = 'pending' AND job.model IS NOT NULL AND job.rank IS NOT NULL
      AND job.tier IS NOT NULL AND job.available_at IS NOT NULL
    RETURN 'pending' AS status, count(job) AS jobs
  UNION ALL
    MATCH (job:EmbedJob) {BY_END_OF_LEASE}
    WHERE job.status = 'processing' AND job.lock_until IS NOT NULL
    RETURN 'processing' AS status, count(job) AS jobs
  UNION ALL
    UNWIND ['completed', 'failed'] AS status
    MATCH (job:EmbedJob) {BY_END}
    WHERE job.status = status AND job.processed_at IS NOT NULL AND job.id IS NOT NULL
    RETURN status, count(job) AS jobs
}}
RETURN status, jobs
"""

COUNT_LIVE = f"""
CALL () {{
    MATCH (job:EmbedJob) {BY_TURN}
    WHERE job.status = 'pending' AND job.model = $model AND job.rank IS NOT NULL
      AND job.tier IS NOT NULL AND job.available_at IS NOT NULL
    WITH job LIMIT $limit
    RETURN 'pending' AS status, count(job) AS jobs
  UNION ALL
    MATCH (job:EmbedJob) {BY_END_OF_LEASE}
    WHERE job.status = 'processing' AND job.lock_until IS NOT NULL
    WITH job LIMIT $limit
    RETURN 'processing' AS status, count(job) AS jobs
}}
RETURN status, jobs
"""

SILENT_JOBS = f"""
MATCH (job:EmbedJob) {BY_END_OF_LEASE}
WHERE job.status = 'processing' AND {NOW} <= job.lock_until < $lock_until
  AND job.last_heartbeat_at < $beaten_before AND {HAS_ID}
WITH job LIMIT $limit
RETURN properties(job) AS job ORDER BY job.lock_until
"""

# One hop along the index: the next owner by name, and whether any lease of it has not ended.
NEXT_OWNER = f"""
CALL () {{
    MATCH (job:EmbedJob) {BY_HOLDER} WHERE job.lock_owner > $after AND job.lease_token IS NOT NULL
    RETURN job.lock_owner AS owner ORDER BY job.lock_owner LIMIT 1
}}
RETURN owner, EXISTS {{
    MATCH (job:EmbedJob) {BY_HOLDER}
    WHERE job.lock_owner = owner AND job.lease_token IS NOT NULL
      AND job.lock_until >= {NOW} AND job.status = 'processing'
}} AS alive
"""

HAS_EXPIRED = f"""
RETURN EXISTS {{
    MATCH (job:EmbedJob) {BY_END_OF_LEASE}
    WHERE job.status = 'processing' AND job.lock_until < {NOW} AND {HAS_ID}
}} AS found
"""

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

COUNT_PARKED = f"{_PARKED} WITH job LIMIT $limit RETURN count(job) AS parked"

WALK_JOBS = """
MATCH (job:EmbedJob) WHERE job.id > $after
WITH job ORDER BY job.id LIMIT $limit
RETURN properties(job) AS job
"""

# A seek per rank and tier, as a lease does it.
COUNT_AHEAD = f"""
CALL () {{
    UNWIND range({FIRST_RANK}, $rank) AS rank
    {EACH_TIER}
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

JOBS_OF_ENTITY = f"""
{OF_ENTITY} AND {HAS_ID}
WITH job ORDER BY job.created_at DESC, job.id DESC LIMIT $limit
RETURN properties(job) AS job
"""
