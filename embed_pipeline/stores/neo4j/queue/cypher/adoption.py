"""Statements that adopt jobs of another program, and find those that cannot be adopted.

They lack what our indexes are made of, or hold it in another form, or another program has changed
the status of one of ours. Only set-up may read every job.
"""

from __future__ import annotations

from embed_pipeline.stores.encoding import FIRST_MS, LAST_MS
from embed_pipeline.stores.neo4j.queue.cypher.parts import (
    BY_END,
    BY_SET_ASIDE,
    CAN_BE_ADOPTED,
    CHANGED_JOBS,
    HAS_ID,
    LOCK,
    NO_ERROR,
    NOW,
    STATUSES,
    TIER_AFTER_STRIKES,
)

# `IS :: INTEGER` is true of nothing as well. (Drivers of JavaScript write numbers as floats.)
_IS_OURS = f"""
all(number IN [job.tier, job.attempts, job.max_attempts] WHERE number IS :: INTEGER NOT NULL)
AND all(number IN [job.rank, job.strikes, job.recoveries] WHERE number IS :: INTEGER)
AND all(time IN [job.created_at, job.available_at] WHERE time IS :: INTEGER NOT NULL)
AND all(time IN [job.created_at, job.available_at, job.lock_until, job.processed_at,
                   job.last_heartbeat_at, job.recovered_at]
        WHERE time IS :: INTEGER AND coalesce({FIRST_MS} <= time <= {LAST_MS}, true))
AND job.priority IS :: INTEGER NOT NULL AND $lowest <= job.priority <= $highest
AND CASE job.status WHEN 'pending' THEN job.rank IS NOT NULL
                    WHEN 'processing' THEN NOT (job.lock_until IS NULL OR job.lease_token IS NULL)
                    WHEN 'completed' THEN job.processed_at IS NOT NULL
                    WHEN 'failed' THEN job.processed_at IS NOT NULL ELSE false END
"""

# No property of another status, none missing of its own.
_IS_IN_STEP = """
[job.rank IS NOT NULL, job.lease_token IS NOT NULL, job.ended_at IS NOT NULL,
 job.set_aside IS NOT NULL] =
[job.status = 'pending', job.status = 'processing', job.status IN ['completed', 'failed'], false]
"""

# Null for what is not a count, and for what is not a time: a text, or a number in another unit.
_NUMBERS = """
[value IN [job.attempts, job.max_attempts, job.strikes, job.recoveries] |
    CASE WHEN toIntegerOrNull(value) >= 0 THEN toIntegerOrNull(value) END]
"""
_TIMES = f"""
[time IN [value IN [job.created_at, job.available_at, job.lock_until, job.processed_at,
                      job.last_heartbeat_at, job.recovered_at] |
    CASE WHEN {FIRST_MS} <= value <= {LAST_MS} THEN toInteger(value)
         WHEN value IS :: ZONED DATETIME NOT NULL THEN value.epochMillis
         WHEN value IS :: LOCAL DATETIME NOT NULL
            THEN datetime({{datetime: value, timezone: 'Z'}}).epochMillis
         WHEN value IS :: DATE NOT NULL
            THEN datetime({{date: value, timezone: 'Z'}}).epochMillis END] |
    CASE WHEN {FIRST_MS} <= time <= {LAST_MS} THEN time END]
"""

# A job without an end of lease is stale. One that ended at an unknown time counts as ended now, so
# that it is kept for a whole retention. One that was set back to pending starts afresh, but keeps
# the attempts that it was given.
_ADOPT = f"""
    {LOCK}
    WITH job, {NOW} AS now,
         coalesce(job.status = 'pending', false) AND job.ended_at IS NOT NULL AS is_reset,
         coalesce(toIntegerOrNull(job.priority), $priority) AS asked,
         {_NUMBERS} AS numbers, {_TIMES} AS times
    WITH job, now, is_reset, numbers, times, coalesce(times[0], now) AS created_at,
         CASE WHEN asked < $lowest THEN $lowest
              WHEN asked > $highest THEN $highest ELSE asked END AS priority
    SET job:TrackedJob, job.priority = priority,
        job.set_aside = CASE WHEN job.status IN {STATUSES} THEN null ELSE 'status' END,
        job.rank = CASE job.status WHEN 'pending' THEN -priority END,
        job.attempts = coalesce(numbers[0], 0),
        job.max_attempts = coalesce(numbers[1], $max_attempts),
        job.strikes = CASE WHEN NOT is_reset THEN numbers[2] END,
        job.recoveries = CASE WHEN NOT is_reset THEN numbers[3] END,
        job.created_at = created_at,
        job.available_at = coalesce(times[1], created_at),
        job.lock_until = CASE job.status
            WHEN 'processing' THEN coalesce(times[2], now - 1) END,
        job.processed_at = CASE WHEN job.status IN ['completed', 'failed']
            THEN coalesce(times[3], now) END,
        job.ended_at = CASE WHEN job.status IN ['completed', 'failed']
            THEN coalesce(times[3], now) END,
        job.lock_owner = CASE job.status WHEN 'processing' THEN job.lock_owner END,
        job.lease_token = CASE job.status
            WHEN 'processing' THEN coalesce(toStringOrNull(job.lease_token), '') END,
        job.last_heartbeat_at = times[4],
        job.recovered_at = times[5]
    SET {TIER_AFTER_STRIKES}
    RETURN job.id AS id
"""

# Jobs of an earlier version of this schema, which had no such mark.
TRACK_JOBS = f"""
MATCH (job:EmbedJob) WHERE NOT job:TrackedJob AND {CAN_BE_ADOPTED} AND {_IS_OURS}
CALL (job) {{
    SET job:TrackedJob,
        job.ended_at = CASE WHEN job.status IN ['completed', 'failed'] THEN job.processed_at END
}} IN TRANSACTIONS OF 1000 ROWS
"""

# They keep the time of their end.
COMPLETE_WITHOUT_TEXT = f"""
MATCH (job:EmbedJob) {BY_END}
WHERE job.status = 'failed' AND job.ended_at IS NOT NULL AND job.id IS NOT NULL
  AND job.error_type = 'EmptyText' AND {HAS_ID}
WITH job LIMIT $page
WITH job ORDER BY job.id
{LOCK}
WITH job WHERE job.status = 'failed'
SET job.status = 'completed', {NO_ERROR}
RETURN collect(job.id) AS done
"""

ADOPT_JOBS = f"""
MATCH (job:EmbedJob)
WHERE {CAN_BE_ADOPTED}
  AND NOT (job:TrackedJob AND ({_IS_OURS} AND {_IS_IN_STEP} OR job.set_aside = 'status'
                               AND NOT coalesce(job.status IN {STATUSES}, false)))
CALL (job) {{
{_ADOPT}
}} IN TRANSACTIONS OF 1000 ROWS
RETURN count(id) AS adopted
"""

# Where jobs lie that another program has written or changed since set-up.
FIND_CHANGED = f"""
CALL () {{
    {CHANGED_JOBS}
  UNION
    MATCH (job:EmbedJob) {BY_SET_ASIDE}
    WHERE job.status IN {STATUSES} AND job.set_aside = 'name'
    WITH job LIMIT $page
    WITH job WHERE {CAN_BE_ADOPTED}
    RETURN job
}}
WITH job LIMIT $page
WITH collect(elementId(job)) AS changed
CALL () {{ MATCH (job:EmbedJob) RETURN count(job) AS all_jobs }}
CALL () {{ MATCH (job:TrackedJob) RETURN count(job) AS tracked_jobs }}
RETURN changed, all_jobs - tracked_jobs AS new
"""

# A new node mostly has the highest number.
FIND_NEWEST = """
MATCH (job:EmbedJob)
WITH job ORDER BY job DESC LIMIT $sample
WITH job WHERE NOT job:TrackedJob
RETURN elementId(job) AS place LIMIT $page
"""

# Otherwise it has the number of one that was deleted. This passes over all, but loads none.
FIND_NEW = "MATCH (job:EmbedJob&!TrackedJob) RETURN elementId(job) AS place LIMIT $page"

_THESE = """
UNWIND $places AS place
MATCH (job:EmbedJob) WHERE elementId(job) = place
WITH job ORDER BY job.id
"""

ADOPT_THESE = f"""
{_THESE}
WHERE {CAN_BE_ADOPTED}
CALL (job) {{
{_ADOPT}
}}
RETURN collect(id) AS adopted
"""

# So that no one looks for them again, until they have a name.
SET_ASIDE = f"""
{_THESE}
WHERE NOT {CAN_BE_ADOPTED}
SET job:TrackedJob, job.set_aside = 'name'
"""

STRANGE_MODELS = """
MATCH (job:EmbedJob)
WHERE job.status = 'pending' AND job.model IS :: STRING NOT NULL
  AND NOT job.model =~ '[^/]+/.+@[0-9]+'
RETURN job.model AS model, count(*) AS jobs
ORDER BY jobs DESC, model LIMIT 3
"""

NAMELESS_JOBS = """
MATCH (job:EmbedJob)
UNWIND [name IN ['id', 'entity_uid', 'model', 'version']
        WHERE NOT job[name] IS :: STRING NOT NULL] AS missing
RETURN missing, count(*) AS jobs ORDER BY missing
"""
