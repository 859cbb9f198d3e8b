"""Statements that put jobs in, lease them out and read them."""

from __future__ import annotations

from embed_pipeline.stores.encoding import FIRST_MS, LAST_MS
from embed_pipeline.stores.neo4j.queue.cypher.parts import (
    BY_END,
    BY_END_OF_LEASE,
    BY_HOLDER,
    BY_TURN,
    FRESH_START,
    HAS_ID,
    LOCK,
    NOW,
    RANKED,
    REAL_NOW,
)

LOCK_BY_KEYS = f"""
UNWIND $keys AS key
MATCH (job:EmbedJob {{entity_uid: key[0], model: key[1], version: key[2]}})
WITH job ORDER BY job.id
{LOCK}
WITH collect(job {{.id, .entity_uid, .model, .version, .status, .fail_code}}) AS jobs
RETURN jobs, {REAL_NOW} AS now
"""

CREATE_JOBS = """
UNWIND $rows AS row
CREATE (job:EmbedJob {
    id: row.id, entity_uid: row.entity_uid, model: row.model, version: row.version,
    status: 'pending', priority: row.priority, rank: -row.priority, tier: 0,
    created_at: $at, available_at: $at, attempts: 0, max_attempts: row.max_attempts,
    force: row.force
})
"""

REVIVE_JOBS = f"""
UNWIND $rows AS row
MATCH (job:EmbedJob {{id: row.id}})
SET job.status = 'pending', job.available_at = $at, job.priority = row.priority,
    job.rank = -row.priority, job.force = row.force, job.again = null, job.done_token = null,
    {FRESH_START}
"""

EXPEDITE_JOBS = f"""
UNWIND $rows AS row
MATCH (job:EmbedJob {{id: row.id}})
WITH job, CASE WHEN job.priority > row.priority THEN job.priority ELSE row.priority END AS priority
SET job.force = true, job.priority = priority,
    job.available_at = CASE WHEN job.available_at < $at THEN job.available_at ELSE $at END
SET {RANKED}
"""

REPEAT_JOBS = """
UNWIND $rows AS row
MATCH (job:EmbedJob {id: row.id})
SET job.again = CASE WHEN row.force OR job.again = 2 THEN 2 ELSE 1 END
"""

# The lock node lets one lease choose at a time. Below it a seek per rank and tier: with one
# ordered scan over all ranks, a higher priority full of deferred jobs would be walked from end to
# end. In subqueries, because an inline MATCH behind the lock loses the order of the index.
_DUE = f"""
    MATCH (job:EmbedJob) {BY_TURN}
    WHERE job.status = 'pending' AND job.model = $model AND job.rank = rank AND job.tier = tier
      AND job.available_at <= now AND {HAS_ID}
"""
_IN_ORDER = "ORDER BY job.status, job.model, job.rank, job.tier, job.available_at"

LOOK_FOR_LEASE = f"""
MATCH (lock:QueueLock {{name: 'lease'}})
SET lock._lock = true REMOVE lock._lock
WITH {NOW} AS now
CALL () {{
    MATCH (state:QueueState) WHERE state.name IN $names AND state.value IS NOT NULL
    RETURN collect({{name: state.name, value: state.value}}) AS states
}}
CALL () {{
    MATCH (job:EmbedJob) {BY_HOLDER}
    WHERE job.lock_owner = $owner AND job.lease_token = $token AND job.status = 'processing'
    RETURN collect(properties(job)) AS held
}}
CALL (now) {{
    UNWIND range(-9, 0) AS rank
    UNWIND range(0, 2) AS tier
    CALL (now, rank, tier) {{
        {_DUE}
        RETURN job.available_at AS due {_IN_ORDER} LIMIT 1
    }}
    RETURN collect({{rank: rank, due: due, tier: tier}}) AS heads
}}
RETURN now, states, held, heads
"""

LEASE_JOBS = f"""
WITH {NOW} AS now, $tier AS tier
CALL (now, tier) {{
    UNWIND $ranks AS rank
    CALL (now, tier, rank) {{
        {_DUE}
        RETURN job {_IN_ORDER} LIMIT $room
    }}
    RETURN DISTINCT job LIMIT $room
}}
WITH job ORDER BY job.id
SET job.status = 'processing', job.rank = null, job.lock_owner = $owner, job.lease_token = $token,
    job.lock_until = {REAL_NOW} + $duration, job.last_heartbeat_at = {REAL_NOW}
RETURN collect(properties(job)) AS jobs
"""

# A moment of any other type would come first, and hide all that are due.
NEXT_DUE = f"""
UNWIND range(-9, 0) AS rank
UNWIND range(0, 2) AS tier
CALL (rank, tier) {{
    MATCH (job:EmbedJob) {BY_TURN}
    WHERE job.status = 'pending' AND job.model = $model AND job.rank = rank AND job.tier = tier
      AND {FIRST_MS} <= job.available_at <= {LAST_MS} AND {HAS_ID}
    RETURN job.available_at AS due {_IN_ORDER} LIMIT 1
}}
RETURN min(due) AS due
"""

GET_JOB = "MATCH (job:EmbedJob {id: $id}) RETURN properties(job) AS job"

FAILED_JOBS = f"""
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
