"""Statements that recover stale jobs, retry failed ones and delete ended ones."""

from __future__ import annotations

from embed_pipeline.stores.neo4j.queue.cypher.parts import (
    BACK_TO_PENDING,
    BY_END,
    BY_END_OF_LEASE,
    BY_HOLDER,
    FRESH_START,
    HAS_ID,
    LOCK,
    NOW,
    RANKED,
    REAL_NOW,
    STRIKES,
    TIER_AFTER_STRIKES,
)

_IS_STALE = f"job.status = 'processing' AND (job.lock_until IS NULL OR job.lock_until < {NOW})"

# A job that another program left without an end of lease is in no index on it, and one that it
# wrote without our fields in none of those that leases and counts use: only we write a tier, and
# never as a float.
LOOK_AT_JOBS = """
CALL () {
    MATCH (job:EmbedJob) WHERE job.id > $after RETURN job ORDER BY job.id LIMIT $sample
}
RETURN count(job) AS looked, max(job.id) AS last,
       collect(CASE WHEN job.status = 'processing' AND job.lock_until IS NULL THEN job.id END)
       AS unended,
       collect(CASE WHEN NOT job.tier IS :: INTEGER NOT NULL THEN job.id END) AS foreign
"""

# One that was taken in just now has an end of lease, and is found both ways.
LOCK_STALE_JOBS = f"""
CALL () {{
    UNWIND $unended AS id MATCH (job:EmbedJob {{id: id}}) RETURN job
  UNION
    MATCH (job:EmbedJob) {BY_END_OF_LEASE}
    WHERE job.status = 'processing' AND job.lock_until < {NOW}
    WITH job WHERE {HAS_ID}
    RETURN job LIMIT $limit
}}
WITH job LIMIT $limit
WITH job ORDER BY job.id
{LOCK}
WITH job WHERE {_IS_STALE}
WITH collect(properties(job)) AS jobs
RETURN jobs, {REAL_NOW} AS now
"""

HAS_EXPIRED = f"""
RETURN EXISTS {{
    MATCH (job:EmbedJob) {BY_END_OF_LEASE}
    WHERE job.status = 'processing' AND job.lock_until < {NOW} AND {HAS_ID}
}} AS found
"""

LOCK_JOBS_OF_OWNER = f"""
MATCH (job:EmbedJob) {BY_HOLDER}
WHERE job.lock_owner = $owner AND job.lease_token IS NOT NULL AND job.status = 'processing'
  AND {HAS_ID}
WITH job LIMIT $limit
WITH job ORDER BY job.id
{LOCK}
WITH job WHERE job.status = 'processing' AND job.lock_owner = $owner
WITH collect(properties(job)) AS jobs
RETURN jobs, {REAL_NOW} AS now
"""

_RECOVERED = f"""
    job.recoveries = row.recoveries, job.recovered_at = $at,
    job.strikes = {STRIKES} + 1
"""

RECOVER_JOBS = f"""
UNWIND $rows AS row
MATCH (job:EmbedJob {{id: row.id}})
SET {BACK_TO_PENDING}, job.available_at = row.available_at, {_RECOVERED}
SET {TIER_AFTER_STRIKES}
"""

COUNT_RECOVERIES = f"""
UNWIND $rows AS row
MATCH (job:EmbedJob {{id: row.id}})
SET {_RECOVERED}
SET {TIER_AFTER_STRIKES}
"""

RETRY_FAILED = f"""
MATCH (job:EmbedJob) {BY_END}
WHERE job.status = 'failed' AND job.processed_at IS NOT NULL AND job.id IS NOT NULL
  AND {HAS_ID} AND ($category IS NULL OR job.error_category = $category)
WITH job ORDER BY job.status, job.processed_at, job.id LIMIT $limit
WITH job ORDER BY job.id
{LOCK}
WITH job WHERE job.status = 'failed'
SET job.status = 'pending', job.available_at = {REAL_NOW}, job.again = null, {RANKED},
    {FRESH_START}
RETURN collect(job.id) AS done
"""

CUTOFF = f"RETURN {NOW} - $age AS cutoff"

# Found by place, and looked at again under the lock: a job revived meanwhile stays.
ENDED_JOBS = f"""
MATCH (job:EmbedJob) {BY_END}
WHERE job.status = $status AND job.processed_at < $cutoff AND job.id IS NOT NULL
RETURN elementId(job) AS place
"""

DELETE_JOB = f"""
MATCH (job:EmbedJob) WHERE elementId(job) = place
{LOCK}
WITH job WHERE job.status = $status AND job.processed_at < $cutoff
DETACH DELETE job
"""

OLD_EVENTS = """
MATCH (event:QueueEvent) WHERE event.at < $cutoff AND event.number IS NOT NULL
RETURN elementId(event) AS place
"""

DELETE_EVENT = """
MATCH (event:QueueEvent) WHERE elementId(event) = place AND event.at < $cutoff
DETACH DELETE event
"""

# Its errors are not raised but returned.
DELETE_BY_APOC = """
CALL apoc.periodic.iterate(
    $find, $delete,
    {batchSize: $page, parallel: false, retries: 3, params: {status: $status, cutoff: $cutoff}}
)
YIELD updateStatistics, failedOperations, errorMessages
RETURN updateStatistics.nodesDeleted AS deleted, failedOperations AS failed,
       keys(errorMessages) AS errors
"""

# The same without APOC. It cannot run inside another transaction.
DELETE_ENDED_JOBS = f"""
MATCH (job:EmbedJob) {BY_END}
WHERE job.status = $status AND job.processed_at < $cutoff AND job.id IS NOT NULL
CALL (job) {{
    {LOCK}
    WITH job WHERE job.status = $status AND job.processed_at < $cutoff
    DETACH DELETE job
    RETURN true AS gone
}} IN TRANSACTIONS OF 1000 ROWS ON ERROR CONTINUE REPORT STATUS AS report
RETURN count(gone) AS deleted, count(report.errorMessage) AS failed,
       collect(DISTINCT report.errorMessage) AS errors
"""

DELETE_OLD_EVENTS = """
MATCH (event:QueueEvent) WHERE event.at < $cutoff AND event.number IS NOT NULL
CALL (event) {
    DETACH DELETE event
    RETURN true AS gone
} IN TRANSACTIONS OF 1000 ROWS ON ERROR CONTINUE REPORT STATUS AS report
RETURN count(gone) AS deleted, count(report.errorMessage) AS failed,
       collect(DISTINCT report.errorMessage) AS errors
"""
