"""Statements of a holder: each names the owner and the token of the lease it proves."""

from __future__ import annotations

from embed_pipeline.stores.neo4j.queue.cypher.parts import (
    BACK_TO_PENDING,
    ERROR_OF_ROW,
    FRESH_START,
    IS_HELD,
    LOCK_NAMED,
    NO_ERROR,
    RANKED,
    REAL_NOW,
    STRIKES,
    TIER_AFTER_STRIKES,
    UNLOCKED,
)

EXTEND_JOBS = f"""
{LOCK_NAMED}
WITH job WHERE {IS_HELD}
SET job.lock_until = {REAL_NOW} + $duration, job.last_heartbeat_at = {REAL_NOW}
RETURN collect(job.id) AS done
"""

RELEASE_JOBS = f"""
{LOCK_NAMED}
WITH job WHERE {IS_HELD}
SET {BACK_TO_PENDING}
RETURN collect(job.id) AS done
"""

DEFER_JOBS = f"""
{LOCK_NAMED}
WITH job, $error AS row, {REAL_NOW} + $delay AS later WHERE {IS_HELD}
SET {BACK_TO_PENDING},
    job.available_at = CASE WHEN job.available_at > later THEN job.available_at ELSE later END,
    job.strikes = {STRIKES} + $strikes,
    {ERROR_OF_ROW}
SET {TIER_AFTER_STRIKES}
RETURN collect(job.id) AS done
"""

# Health is locked by the way: every completion changes it.
COMPLETE_JOBS = f"""
{LOCK_NAMED}
WITH job WHERE {IS_HELD} AND coalesce(job.again, 0) = 0
WITH job, {REAL_NOW} AS now
SET job.status = 'completed', job.processed_at = now, job.ended_at = now,
    job.done_token = $token, job.force = null, {UNLOCKED}, {NO_ERROR}
WITH collect(job.id) AS done
CALL () {{
    MERGE (health:QueueState {{name: 'health'}})
    SET health._lock = true REMOVE health._lock
    RETURN health.value AS health
}}
RETURN done, health, {REAL_NOW} AS now
"""

COMPLETE_AND_REPEAT_JOBS = f"""
{LOCK_NAMED}
WITH job WHERE {IS_HELD}
SET job.status = 'pending', job.available_at = {REAL_NOW}, job.done_token = $token,
    job.force = CASE WHEN job.again = 2 THEN true END, job.again = null, {UNLOCKED}, {RANKED},
    {FRESH_START}
RETURN collect(job.id) AS done
"""

FORMERLY_DONE = """
UNWIND $job_ids AS id
MATCH (job:EmbedJob {id: id}) WHERE job.done_token = $token
RETURN collect(job.id) AS done
"""

LOCK_HELD_JOBS = f"""
{LOCK_NAMED}
WITH job WHERE {IS_HELD}
WITH collect(properties(job)) AS jobs
RETURN jobs, {REAL_NOW} AS now
"""
