"""Every statement that SQL databases share, by the name of what it does.

Parameters are `:name`; times are milliseconds since 1970. A write on leased jobs names the token
and the expected status: no row changed means that the lease was lost.
"""

from __future__ import annotations

from collections.abc import Mapping

from embed_pipeline.domain.isolation import Tier
from embed_pipeline.domain.job import RANKS
from embed_pipeline.stores.encoding import JOB_FIELDS


class Dialect:
    """The words of a database.

    job, event, state, counter   the tables
    row                          the column that finds a row fastest, and orders equal due times
    now                          the database's clock
    listed_ids, listed_names     whether `id` is in the list `:job_ids`, `name` in `:names`
    pick, end                    around a subquery of rows to be changed
    lock, skip_locked            behind a query whose rows are locked
    greatest                     the function of that name
    """

    def __init__(self, **words: str) -> None:
        self._words = dict(words)
        for name, fragment in _FRAGMENTS.items():
            self._words[name] = fragment.format_map(self._words)

    def render(self, statement: str) -> str:
        return statement.format_map(self._words)


# Each may use those before it.
_FRAGMENTS: Mapping[str, str] = {
    "columns": ", ".join(JOB_FIELDS),
    # What an enqueue decides by.
    "known_columns": """job.entity_uid, job.model, job.version,
    job.id, job.status, job.fail_code, job.priority, job.available_at, job.again""",
    "held": (
        "{listed_ids} AND status = 'processing' AND lock_owner = :owner AND lease_token = :token"
    ),
    "unlocked": "lock_owner = NULL, lock_until = NULL, lease_token = NULL",
    "no_error": """error = NULL, error_type = NULL, error_category = NULL, error_stack = NULL,
    fail_code = NULL, fail_reason = NULL""",
    "fresh_start": """attempts = 0, recoveries = 0, recovered_at = NULL, strikes = 0,
    processed_at = NULL, {no_error}""",
    "back_to_pending": """status = 'pending', {unlocked},
    force = (force OR again = 2), again = 0""",
    "each_rank_and_tier": (
        f"(VALUES {', '.join(f'({rank})' for rank in RANKS)}) AS ranks"
        f" CROSS JOIN (VALUES {', '.join(f'({tier:d})' for tier in Tier)}) AS tiers"
    ),
    "of_rank_and_tier": """status = 'pending' AND model = :model
    AND rank = ranks.column1 AND tier = tiers.column1""",
    "of_category": "(CAST(:category AS text) IS NULL OR error_category = :category)",
    "ended_after": """(processed_at, id) > (:ended_at, :id)
ORDER BY processed_at NULLS FIRST, id LIMIT :limit""",
    "latest_first": "ORDER BY processed_at DESC NULLS LAST, id DESC LIMIT :limit",
    # A job that failed before there was a code has none.
    "parked": "status = 'failed' AND coalesce(fail_code, '') <> :entity_gone",
}

# The subquery locks what it picks, so the change itself need not check the status again: that
# would only let a planner walk the index of pending jobs instead of seeking these.
LEASE_JOBS = """
UPDATE {job}
SET status = 'processing', lock_owner = :owner, lock_until = {now} + :duration,
    lease_token = :token, last_heartbeat_at = {now}
WHERE {row} {pick}
    SELECT {row} FROM {job}
    WHERE status = 'pending' AND model = :model AND rank = :rank AND tier = :tier
      AND available_at <= {now}
    ORDER BY available_at, {row} LIMIT :limit {skip_locked}
{end}
RETURNING {columns}
"""

LEASED_BEFORE = """
SELECT {columns} FROM {job}
WHERE status = 'processing' AND lock_owner = :owner AND lease_token = :token
"""

EXTEND_JOBS = """
UPDATE {job} SET lock_until = {now} + :duration, last_heartbeat_at = {now} WHERE {held} RETURNING id
"""

RELEASE_JOBS = "UPDATE {job} SET {back_to_pending} WHERE {held} RETURNING id"

DEFER_JOBS = """
UPDATE {job}
SET {back_to_pending}, strikes = strikes + :strike,
    available_at = {greatest}(available_at, {now} + :delay), error = :error,
    error_type = :error_type, error_category = :error_category, error_stack = :error_stack
WHERE {held} RETURNING id
"""

COMPLETE_JOBS = """
UPDATE {job}
SET status = 'completed', processed_at = {now}, done_token = :token, force = false, {unlocked},
    {no_error}
WHERE {held} AND again = 0 RETURNING id
"""

COMPLETE_AND_REPEAT_JOBS = """
UPDATE {job}
SET status = 'pending', available_at = {now}, done_token = :token, force = (again = 2), again = 0,
    {unlocked}, {fresh_start}
WHERE {held} RETURNING id
"""

COMPLETED_BEFORE = "SELECT id FROM {job} WHERE {listed_ids} AND done_token = :token"

HELD_JOBS = "SELECT {columns} FROM {job} WHERE {held} ORDER BY id {lock}"

# A job whose lease has no end is stale too.
STALE_JOBS = """
SELECT {columns} FROM {job} WHERE status = 'processing' AND coalesce(lock_until, 0) < {now}
ORDER BY coalesce(lock_until, 0) LIMIT :limit {skip_locked}
"""

# The first end of a lease by its index; a planner may answer EXISTS by reading the whole table.
HAS_STALE = """
SELECT (
    SELECT coalesce(lock_until, 0) FROM {job} WHERE status = 'processing'
    ORDER BY coalesce(lock_until, 0) LIMIT 1
) < {now} AS found
"""

JOBS_OF_OWNER = """
SELECT {columns} FROM {job} WHERE status = 'processing' AND lock_owner = :owner
ORDER BY lease_token LIMIT :limit {lock}
"""

RETRY_FAILED = """
UPDATE {job} SET status = 'pending', available_at = {now}, again = 0, {fresh_start}
WHERE {row} {pick}
    SELECT {row} FROM {job} WHERE status = 'failed' AND {of_category}
    ORDER BY processed_at NULLS FIRST, id LIMIT :limit {skip_locked}
{end} RETURNING id
"""

CANCEL_JOBS = """
DELETE FROM {job} WHERE {row} {pick}
    SELECT {row} FROM {job} WHERE status = 'pending'
    ORDER BY model, rank, tier, available_at LIMIT :limit {skip_locked}
{end} RETURNING id
"""

CANCEL_JOBS_OF_ENTITY = """
DELETE FROM {job} WHERE {row} {pick}
    SELECT {row} FROM {job} WHERE status = 'pending' AND entity_uid = :entity_uid
    LIMIT :limit {skip_locked}
{end} RETURNING id
"""

DELETE_ENDED = """
DELETE FROM {job} WHERE {row} {pick}
    SELECT {row} FROM {job} WHERE status IN ('completed', 'failed') AND processed_at < :before
    LIMIT :limit {skip_locked}
{end} RETURNING status
"""

DELETE_EVENTS = """
DELETE FROM {event} WHERE seq {pick}
    SELECT seq FROM {event} WHERE at < :before LIMIT :limit {skip_locked}
{end} RETURNING seq
"""

GET_JOB = "SELECT {columns} FROM {job} WHERE id = :id"

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
