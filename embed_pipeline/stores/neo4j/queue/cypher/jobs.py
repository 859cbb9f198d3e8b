"""Statements that put jobs in, write their changes and lease them out."""

from __future__ import annotations

from embed_pipeline.stores.neo4j.queue.cypher.parts import (
    BY_LEASE,
    BY_TURN,
    COUNT_FOREIGN,
    EACH_RANK,
    EACH_TIER,
    HAS_FOREIGN,
    HAS_ID,
    IN_TURN,
    LOCK,
    NOW,
    RANKED_IF_PENDING,
    REAL_NOW,
    TIER_AFTER_STRIKES,
)

LOCK_BY_KEYS = f"""
UNWIND $keys AS key
MATCH (job:EmbedJob {{entity_uid: key[0], model: key[1], version: key[2]}})
WITH job ORDER BY job.id
{LOCK}
WITH collect(job {{.id, .entity_uid, .model, .version, .status, .fail_code, .priority,
                  .available_at, .again}}) AS jobs
RETURN jobs, {REAL_NOW} AS now
"""

CREATE_JOBS = """
UNWIND $rows AS row
CREATE (job:EmbedJob:TrackedJob {
    id: row.id, entity_uid: row.entity_uid, model: row.model, version: row.version,
    status: 'pending', priority: row.priority, rank: -row.priority, tier: 0,
    created_at: $at, available_at: $at, attempts: 0, max_attempts: $max_attempts,
    force: row.force
})
"""

# What our indexes are made of follows from the rest.
SAVE_JOBS = f"""
UNWIND $rows AS row
MATCH (job:EmbedJob {{id: row.id}})
SET job += row.fields
SET {RANKED_IF_PENDING}, {TIER_AFTER_STRIKES},
    job.ended_at = CASE WHEN row.fields.status IS NULL THEN job.ended_at
                        ELSE row.fields.processed_at END
"""

# The lock node lets one of our leases choose at a time; another program does not know it, so the
# first write is followed by a second check. Below it a seek per rank and tier: with one
# ordered scan over all ranks, a higher priority full of deferred jobs would be walked from end to
# end. In subqueries, because an inline MATCH behind the lock loses the order of the index.
_DUE = f"""
    MATCH (job:EmbedJob) {BY_TURN}
    WHERE job.status = 'pending' AND job.model = $model AND job.rank = rank AND job.tier = tier
      AND job.available_at <= now AND {HAS_ID}
"""

VIEW_FOR_LEASE = f"""
MATCH (lock:QueueLock {{name: 'lease'}})
SET lock._lock = true REMOVE lock._lock
WITH {NOW} AS now
CALL () {{
    MATCH (state:QueueState) WHERE state.name IN $names AND state.value IS NOT NULL
    RETURN collect({{name: state.name, value: state.value}}) AS states
}}
CALL () {{
    MATCH (job:EmbedJob) {BY_LEASE}
    WHERE job.status = 'processing' AND job.lease_token = $token AND job.lock_owner = $owner
    RETURN collect(properties(job)) AS held
}}
CALL (now) {{
    {EACH_RANK}
    {EACH_TIER}
    CALL (now, rank, tier) {{
        {_DUE}
        RETURN job.available_at AS due {IN_TURN} LIMIT 1
    }}
    RETURN collect({{rank: rank, due: due, tier: tier}}) AS heads
}}
{COUNT_FOREIGN}
RETURN now, states, held, heads, {HAS_FOREIGN} AS has_foreign
"""

LEASE_JOBS = f"""
WITH {NOW} AS now, $tier AS tier
CALL (now, tier) {{
    UNWIND $ranks AS rank
    CALL (now, tier, rank) {{
        {_DUE}
        RETURN job {IN_TURN} LIMIT $room
    }}
    RETURN DISTINCT job LIMIT $room
}}
WITH job ORDER BY job.id
SET job.lease_token = $token
WITH job WHERE job.status = 'pending'
SET job.status = 'processing', job.rank = null, job.lock_owner = $owner,
    job.lock_until = {REAL_NOW} + $duration, job.last_heartbeat_at = {REAL_NOW}
RETURN collect(properties(job)) AS jobs
"""
