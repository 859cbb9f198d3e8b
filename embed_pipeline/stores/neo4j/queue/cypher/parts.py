"""What the statements on jobs are made of, and the rules that they all keep.

A write takes the job's lock by writing a property, then checks again: whatever an index or an
earlier read said may be old by then. Out of pending a job goes only under the lock node of
leases (lease, cancel), so that these need no second check. Ids come sorted, so that no two wait
in a circle. A statement that locks for a decision returns one row: what it holds, and the time
behind the locks.

`$now` is the injected clock in milliseconds; null means the server's. What is compared uses
`timestamp()`, which stands still while a statement waits (late is safe); what is granted uses the
real time, so that a lease is never shorter than asked for. Statements are f-strings only to be
filled with these constants.
"""

from __future__ import annotations

from embed_pipeline.domain.isolation import SMALL_FROM_STRIKES, SOLO_FROM_STRIKES, Tier
from embed_pipeline.domain.job import DEFAULT_PRIORITY, HIGHEST_PRIORITY, LOWEST_PRIORITY, RANKS

NOW = "coalesce($now, timestamp())"
REAL_NOW = "coalesce($now, datetime.realtime().epochMillis)"

FIRST_RANK = RANKS[0]
EACH_RANK = f"UNWIND range({FIRST_RANK}, {RANKS[-1]}) AS rank"
EACH_TIER = f"UNWIND range({min(Tier):d}, {max(Tier):d}) AS tier"
IN_TURN = "ORDER BY job.status, job.model, job.rank, job.tier, job.available_at"

# Where two indexes would do, the planner's choice follows the numbers of the day.
BY_TURN = "USING INDEX SEEK job:EmbedJob(status, model, rank, tier, available_at)"
BY_HOLDER = "USING INDEX SEEK job:EmbedJob(lock_owner, lease_token)"
BY_END_OF_LEASE = "USING INDEX SEEK job:EmbedJob(status, lock_until)"
BY_END = "USING INDEX SEEK job:EmbedJob(status, processed_at, id)"

LOCK = "SET job._lock = true REMOVE job._lock"

LOCK_NAMED = f"""
UNWIND $job_ids AS id
MATCH (job:EmbedJob {{id: id}})
{LOCK}
"""

IS_HELD = "job.status = 'processing' AND job.lock_owner = $owner AND job.lease_token = $token"

# A job of another program that cannot be named so is passed over: no list of ids could hold it.
HAS_ID = "job.id IS :: STRING NOT NULL"

# Only we write a tier, never as a float; and only pending jobs have a rank, which a program that
# makes a job pending does not know.
IS_FOREIGN = """
(NOT job.tier IS :: INTEGER NOT NULL OR (job.status = 'pending' AND job.rank IS NULL))
"""

UNLOCKED = "job.lock_owner = null, job.lock_until = null, job.lease_token = null"

# Only pending jobs have a rank, so that the others cost the index of pending jobs nothing.
# Other programs leave any priority, or none, or no number.
_RANK = f"""
    CASE WHEN job.priority > {HIGHEST_PRIORITY} THEN -{HIGHEST_PRIORITY}
         WHEN job.priority < {LOWEST_PRIORITY} THEN -{LOWEST_PRIORITY}
         ELSE -coalesce(toIntegerOrNull(job.priority), {DEFAULT_PRIORITY}) END
"""
RANKED = f"job.rank = {_RANK}"
RANKED_IF_PENDING = f"job.rank = CASE job.status WHEN 'pending' THEN {_RANK} END"

STRIKES = "coalesce(toIntegerOrNull(job.strikes), 0)"

# Zero, false and "no" are not stored where missing means the same: fewer properties to touch.
BACK_TO_PENDING = f"""
    job.force = CASE WHEN job.force = true OR job.again = 2 THEN true END,
    job.again = null, job.status = 'pending', {UNLOCKED}, {RANKED}
"""

NO_ERROR = """
    job.error = null, job.error_type = null, job.error_category = null, job.error_stack = null,
    job.fail_code = null, job.fail_reason = null
"""

FRESH_START = f"""
    job.attempts = 0, job.recoveries = null, job.recovered_at = null, job.strikes = null,
    job.tier = 0, job.processed_at = null, {NO_ERROR}
"""

ERROR_OF_ROW = """
    job.error = row.error, job.error_type = row.error_type,
    job.error_category = row.error_category, job.error_stack = row.error_stack
"""

TIER_AFTER_STRIKES = f"""
    job.tier = CASE WHEN job.strikes >= {SOLO_FROM_STRIKES} THEN {Tier.SOLO:d}
                    WHEN job.strikes >= {SMALL_FROM_STRIKES} THEN {Tier.SMALL:d}
                    ELSE {Tier.NORMAL:d} END
"""

OF_ENTITY = """
MATCH (job:EmbedJob) USING INDEX SEEK job:EmbedJob(entity_uid, model, version)
WHERE job.entity_uid = $entity_uid AND job.model IS NOT NULL AND job.version IS NOT NULL
"""
