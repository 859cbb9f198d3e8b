"""Statements that take in jobs of another program, and find those that cannot be taken in.

They lack what our indexes are made of, or hold it in another form, and would never be found.
Only set-up may read every job.
"""

from __future__ import annotations

from embed_pipeline.stores.encoding import FIRST_MS, LAST_MS
from embed_pipeline.stores.neo4j.queue.cypher.parts import IS_FOREIGN, LOCK, NOW, TIER_AFTER_STRIKES

# A job without one of these four is left alone, `adoption` names it.
_CAN_BE_ADOPTED = """
all(name IN [job.id, job.entity_uid, job.model, job.version] WHERE name IS :: STRING NOT NULL)
"""

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
                    WHEN 'processing' THEN job.lock_until IS NOT NULL
                    WHEN 'completed' THEN job.processed_at IS NOT NULL
                    WHEN 'failed' THEN job.processed_at IS NOT NULL ELSE true END
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
# that it is kept for a whole retention.
_ADOPT = f"""
    {LOCK}
    WITH job, {NOW} AS now, coalesce(toIntegerOrNull(job.priority), $priority) AS asked,
         {_NUMBERS} AS numbers, {_TIMES} AS times
    WITH job, now, numbers, times, coalesce(times[0], now) AS created_at,
         CASE WHEN asked < $lowest THEN $lowest
              WHEN asked > $highest THEN $highest ELSE asked END AS priority
    SET job.priority = priority,
        job.rank = CASE job.status WHEN 'pending' THEN -priority END,
        job.attempts = coalesce(numbers[0], 0),
        job.max_attempts = coalesce(numbers[1], $max_attempts),
        job.strikes = numbers[2],
        job.recoveries = numbers[3],
        job.created_at = created_at,
        job.available_at = coalesce(times[1], created_at),
        job.lock_until = CASE job.status
            WHEN 'processing' THEN coalesce(times[2], created_at) END,
        job.processed_at = CASE WHEN job.status IN ['completed', 'failed']
            THEN coalesce(times[3], now) END,
        job.last_heartbeat_at = times[4],
        job.recovered_at = times[5]
    SET {TIER_AFTER_STRIKES}
    RETURN job.id AS id
"""

ADOPT_JOBS = f"""
MATCH (job:EmbedJob)
WHERE {_CAN_BE_ADOPTED} AND NOT ({_IS_OURS})
CALL (job) {{
{_ADOPT}
}} IN TRANSACTIONS OF 1000 ROWS
RETURN count(id) AS adopted
"""

# Those that came after set-up, by their ids.
ADOPT_THESE = f"""
UNWIND $ids AS foreign
MATCH (job:EmbedJob {{id: foreign}})
WHERE {IS_FOREIGN} AND {_CAN_BE_ADOPTED}
CALL (job) {{
{_ADOPT}
}}
RETURN collect(id) AS adopted
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
