"""Statements over many jobs: recover, retry, delete, cancel."""

from __future__ import annotations

from embed_pipeline.stores.neo4j.queue.cypher.parts import (
    BY_END,
    BY_END_OF_LEASE,
    BY_LEASE,
    BY_STATUS,
    FRESH_START,
    HAS_ID,
    LOCK,
    NOW,
    OF_ENTITY,
    RANKED,
    REAL_NOW,
    UNENDED_JOBS,
)

_IS_STALE = f"job.status = 'processing' AND (job.lock_until IS NULL OR job.lock_until < {NOW})"

LOCK_STALE_JOBS = f"""
CALL () {{
    {UNENDED_JOBS}
    RETURN job LIMIT $limit
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

LOCK_JOBS_OF_OWNER = f"""
UNWIND $tokens AS token
MATCH (job:EmbedJob) {BY_LEASE}
WHERE job.status = 'processing' AND job.lease_token = token AND job.lock_owner = $owner
  AND {HAS_ID}
WITH job LIMIT $limit
WITH job ORDER BY job.id
{LOCK}
WITH job WHERE job.status = 'processing' AND job.lock_owner = $owner
WITH collect(properties(job)) AS jobs
RETURN jobs, {REAL_NOW} AS now
"""

RETRY_FAILED = f"""
MATCH (job:EmbedJob) {BY_END}
WHERE job.status = 'failed' AND job.ended_at IS NOT NULL AND job.id IS NOT NULL
  AND {HAS_ID} AND ($category IS NULL OR job.error_category = $category)
WITH job ORDER BY job.status, job.ended_at, job.id LIMIT $limit
WITH job ORDER BY job.id
{LOCK}
WITH job WHERE job.status = 'failed'
SET job.status = 'pending', job.available_at = {REAL_NOW}, job.again = null, {RANKED},
    {FRESH_START}
RETURN collect(job.id) AS done
"""

# Found by place, and checked again under the lock: a job revived meanwhile stays.
ENDED_JOBS = f"""
MATCH (job:EmbedJob) {BY_END}
WHERE job.status = $status AND job.ended_at < $cutoff AND job.id IS NOT NULL
RETURN elementId(job) AS place
"""

DELETE_JOB = f"""
MATCH (job:EmbedJob) WHERE elementId(job) = place
{LOCK}
WITH job WHERE job.status = $status AND job.ended_at < $cutoff
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

# The same without APOC, a page at a time.
DELETE_ENDED_PAGE = f"""
UNWIND ['completed', 'failed'] AS status
CALL (status) {{
    MATCH (job:EmbedJob) {BY_END}
    WHERE job.status = status AND job.ended_at < $cutoff AND job.id IS NOT NULL
    RETURN job LIMIT $limit
}}
WITH job LIMIT $limit
WITH job ORDER BY job.id
{LOCK}
WITH job, job.status AS status
WHERE status IN ['completed', 'failed'] AND job.ended_at < $cutoff
DETACH DELETE job
RETURN collect(status) AS gone
"""

DELETE_EVENTS_PAGE = """
MATCH (event:QueueEvent) WHERE event.at < $cutoff AND event.number IS NOT NULL
WITH event LIMIT $limit
DETACH DELETE event
RETURN count(*) AS gone
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
    MATCH (job:EmbedJob) {BY_STATUS} WHERE job.status = 'pending'
    RETURN job LIMIT $limit
}}
{_DELETED}
"""

CANCEL_JOBS_OF_ENTITY = f"""
{_ALONE}
WITH lock
CALL () {{
    {OF_ENTITY} AND job.status = 'pending'
    RETURN job LIMIT $limit
}}
{_DELETED}
"""

DELETE_JOBS_OF_ENTITY = f"""
{_ALONE}
WITH lock
CALL () {{ {OF_ENTITY} RETURN job }}
WITH job ORDER BY job.id
{LOCK}
WITH job, toStringOrNull(job.id) AS id
DETACH DELETE job
RETURN collect(id) AS done
"""
