"""Every statement that SQL databases share and that changes nothing; see `statements`."""

from __future__ import annotations

GET_JOB = "SELECT {columns} FROM {job} WHERE id = :id"

# The first end of a lease by its index; a planner may answer EXISTS by reading the whole table.
HAS_STALE = """
SELECT coalesce((
    SELECT coalesce(lock_until, 0) FROM {job} WHERE status = 'processing'
    ORDER BY coalesce(lock_until, 0) LIMIT 1
) < {now}, false) OR (SELECT id FROM {job} {first_malformed} 1) IS NOT NULL AS found
"""

# Sorted by the index that holds the range.
SILENT_JOBS = """
SELECT {columns} FROM {job} WHERE status = 'processing'
  AND coalesce(lock_until, 0) >= {now} AND coalesce(lock_until, 0) < :lock_until
  AND last_heartbeat_at < :beaten_before
ORDER BY coalesce(lock_until, 0) LIMIT :limit
"""

# A seek per rank and tier: with one ordered scan over all ranks, a higher priority full of
# deferred jobs would be walked from end to end.
NEXT_DUE = """
SELECT min((
    SELECT available_at FROM {job} WHERE {of_rank_and_tier} ORDER BY available_at LIMIT 1
)) AS due FROM {each_rank_and_tier}
"""

# Each count reads one partial index, not the table; there is none on completed jobs alone.
COUNT_BY_STATUS = """
SELECT (SELECT count(*) FROM {job} WHERE status = 'pending') AS pending,
       (SELECT count(*) FROM {job} WHERE status = 'processing') AS processing,
       (SELECT count(*) FROM {job} WHERE status IN ('completed', 'failed')) AS ended,
       (SELECT count(*) FROM {job} WHERE status = 'failed') AS failed
"""

# In the order of an index, because a planner may otherwise read the whole table.
COUNT_LIVE = """
SELECT (SELECT count(*) FROM (
           SELECT 1 FROM {job} WHERE status = 'pending' AND model = :model
           ORDER BY rank, tier, available_at LIMIT :limit
       ) AS counted) AS pending,
       (SELECT count(*) FROM (
           SELECT 1 FROM {job} WHERE status = 'processing'
           ORDER BY coalesce(lock_until, 0) LIMIT :limit
       ) AS counted) AS processing
"""

# Hops from owner to owner along the index instead of reading all their jobs.
LIVE_OWNERS = """
WITH RECURSIVE owners(name) AS (
    SELECT min(lock_owner) FROM {job} WHERE status = 'processing'
    UNION ALL
    SELECT (SELECT min(lock_owner) FROM {job}
            WHERE status = 'processing' AND lock_owner > owners.name)
    FROM owners WHERE owners.name IS NOT NULL
)
SELECT name FROM owners WHERE EXISTS (
    SELECT 1 FROM {job}
    WHERE status = 'processing' AND lock_owner = owners.name AND lock_until >= {now}
)
"""

PENDING_MODELS = """
WITH RECURSIVE models(name) AS (
    SELECT min(model) FROM {job} WHERE status = 'pending'
    UNION ALL
    SELECT (SELECT min(model) FROM {job} WHERE status = 'pending' AND model > models.name)
    FROM models WHERE models.name IS NOT NULL
)
SELECT name FROM models WHERE name IS NOT NULL
"""

LATEST_FAILED = (
    "SELECT {columns} FROM {job} WHERE status = 'failed' AND {of_category} {latest_first}"
)

ENDED_JOBS = """
SELECT {columns} FROM {job}
WHERE status IN ('completed', 'failed')
  AND (CAST(:status AS text) IS NULL OR status = :status) AND {ended_after}
"""

# Few among many, so they have an index of their own.
FAILED_JOBS = "SELECT {columns} FROM {job} WHERE status = 'failed' AND {ended_after}"

PARKED_JOBS = "SELECT {columns} FROM {job} WHERE {parked} {latest_first}"

COUNT_PARKED = """
SELECT count(*) AS found FROM (SELECT 1 FROM {job} WHERE {parked} {latest_first}) AS counted
"""

WALK_JOBS = "SELECT {columns} FROM {job} WHERE id > :after ORDER BY id LIMIT :limit"

COUNT_AHEAD = """
SELECT count(*) AS found FROM (
    SELECT 1 FROM {job} WHERE status = 'pending' AND model = :model AND id <> :id
      AND (rank < :rank OR (rank = :rank AND available_at <= :available_at))
    LIMIT :limit
) AS ahead
"""

JOBS_OF_ENTITY = """
SELECT {columns} FROM {job} WHERE entity_uid = :entity_uid
ORDER BY created_at DESC, id DESC LIMIT :limit
"""
