"""Every statement that SQL databases share, by the name of what it does.

Parameters are `:name`; times are milliseconds since 1970. A write on leased jobs names the token
and the expected status: no row changed means that the lease was lost.
"""

from __future__ import annotations

from collections.abc import Mapping

from embed_pipeline.domain.job import RANKS
from embed_pipeline.domain.lease import Tier
from embed_pipeline.stores.encoding import JOB_FIELDS, LAST_MS

TIME_OF_STATUS = """CASE status WHEN 'pending' THEN available_at
    WHEN 'processing' THEN lock_until ELSE processed_at END"""
"""The time by which jobs of this status are found."""

MALFORMED = f"{TIME_OF_STATUS} > {LAST_MS}"
"""That time is none: beyond the year 9999, or, in SQLite, where any value fits any column, a text,
which is greater than all numbers."""

MALFORMED_INDEX = f"(({TIME_OF_STATUS})) WHERE {MALFORMED}"
"""Empty, unless another program writes such times. An index on the time itself, so that a planner
has no other one for `first_malformed`."""

HAD_NO_TEXT = "status = 'failed' AND error_type = 'EmptyText'"
"""Jobs that 0.1 failed because their entity had no text, which is no failure any more."""

NO_ERROR = """error = NULL, error_type = NULL, error_category = NULL, error_stack = NULL,
    fail_code = NULL, fail_reason = NULL"""


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
    "last": str(LAST_MS),
    "first_malformed": f"WHERE {MALFORMED} ORDER BY {TIME_OF_STATUS} LIMIT",
    # What an enqueue decides by.
    "known_columns": """job.entity_uid, job.model, job.version,
    job.id, job.status, job.fail_code, job.priority, job.available_at, job.again""",
    "held": (
        "{listed_ids} AND status = 'processing' AND lock_owner = :owner AND lease_token = :token"
    ),
    "unlocked": "lock_owner = NULL, lock_until = NULL, lease_token = NULL",
    "no_error": NO_ERROR,
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
WHERE {held} AND again NOT IN (1, 2) RETURNING id
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

# No lease, recovery or cleanup would find these: they are due, stale, or have ended just now.
REPAIR_JOBS = """
UPDATE {job} SET
    available_at = CASE WHEN available_at > {last} THEN {now} ELSE available_at END,
    lock_until = CASE WHEN lock_until > {last} THEN NULL ELSE lock_until END,
    processed_at = CASE WHEN processed_at > {last} THEN {now} ELSE processed_at END
WHERE {row} {pick} SELECT {row} FROM {job} {first_malformed} :limit {skip_locked} {end}
RETURNING id
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

DELETE_JOBS_OF_ENTITY = "DELETE FROM {job} WHERE entity_uid = :entity_uid RETURNING id"

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
