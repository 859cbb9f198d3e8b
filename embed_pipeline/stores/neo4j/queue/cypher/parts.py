"""What the statements on jobs are made of, and the rules that they all keep.

A write takes the job's lock by writing a property, then checks again: whatever an index or an
earlier read said may be old by then. Ids come sorted, so that no two wait in a circle. A statement
that locks for a decision returns one row: what it holds, and the time behind the locks.

Other programs write jobs and change their status too. Every job that we know has the label
TrackedJob, and of these three properties, which only we write, the one of its status: `rank` while
it is pending, `lease_token` while it is processing, `ended_at` when it has ended. Each is part of
an index behind the status. So a job without the label, or in an index of ours under another status,
was written or changed by another program, and has to be adopted.

`$now` is the injected clock in milliseconds; null means the server's. What is compared uses
`timestamp()`, which stands still while a statement waits (late is safe); what is granted uses the
real time, so that a lease is never shorter than asked for. Statements are f-strings only to be
filled with these constants.
"""

from __future__ import annotations

from embed_pipeline.domain.job import (
    DEFAULT_PRIORITY,
    HIGHEST_PRIORITY,
    LOWEST_PRIORITY,
    RANKS,
    JobStatus,
)
from embed_pipeline.domain.lease import SMALL_FROM_STRIKES, SOLO_FROM_STRIKES, Tier

NOW = "coalesce($now, timestamp())"
REAL_NOW = "coalesce($now, datetime.realtime().epochMillis)"

FIRST_RANK = RANKS[0]
EACH_RANK = f"UNWIND range({FIRST_RANK}, {RANKS[-1]}) AS rank"
EACH_TIER = f"UNWIND range({min(Tier):d}, {max(Tier):d}) AS tier"
IN_TURN = "ORDER BY job.status, job.model, job.rank, job.tier, job.available_at"

# Where two indexes would do, the planner's choice follows the numbers of the day.
BY_TURN = "USING INDEX SEEK job:EmbedJob(status, model, rank, tier, available_at)"
BY_LEASE = "USING INDEX SEEK job:EmbedJob(status, lease_token)"
BY_END_OF_LEASE = "USING INDEX SEEK job:EmbedJob(status, lock_until)"
BY_END = "USING INDEX SEEK job:EmbedJob(status, ended_at, id)"
BY_STATUS = "USING INDEX SEEK job:EmbedJob(status)"
BY_SET_ASIDE = "USING INDEX SEEK job:EmbedJob(status, set_aside)"

UNENDED_SAMPLE = 2_000
"""Leased jobs that are read for a missing end of lease."""

LOCK = "SET job._lock = true REMOVE job._lock"

LOCK_NAMED = f"""
UNWIND $job_ids AS id
MATCH (job:EmbedJob {{id: id}})
{LOCK}
"""

IS_HELD = "job.status = 'processing' AND job.lock_owner = $owner AND job.lease_token = $token"

# A job of another program that cannot be named so is passed over: no list of ids could hold it.
HAS_ID = "job.id IS :: STRING NOT NULL"

# A job without one of these four is left alone, `adoption` names it.
CAN_BE_ADOPTED = """
all(name IN [job.id, job.entity_uid, job.model, job.version] WHERE name IS :: STRING NOT NULL)
"""

UNLOCKED = "job.lock_owner = null, job.lock_until = null, job.lease_token = null"

# Other programs leave any priority, or none, or no number.
_RANK = f"""
    CASE WHEN job.priority > {HIGHEST_PRIORITY} THEN -{HIGHEST_PRIORITY}
         WHEN job.priority < {LOWEST_PRIORITY} THEN -{LOWEST_PRIORITY}
         ELSE -coalesce(toIntegerOrNull(job.priority), {DEFAULT_PRIORITY}) END
"""
RANKED = f"job.rank = {_RANK}"
RANKED_IF_PENDING = f"""
    job.rank = CASE WHEN job.status = 'pending' THEN {_RANK}
                    WHEN row.fields.status IS NULL THEN job.rank END
"""

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
    job.tier = 0, job.processed_at = null, job.ended_at = null, {NO_ERROR}
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

STATUSES = [status.value for status in JobStatus]

_RANKED_BUT = f"""
    MATCH (job:EmbedJob) {BY_TURN}
    WHERE job.model IS NOT NULL AND job.rank IS NOT NULL AND job.tier IS NOT NULL
      AND job.available_at IS NOT NULL AND job.status
"""
_LEASED_BUT = f"MATCH (job:EmbedJob) {BY_LEASE} WHERE job.lease_token IS NOT NULL AND job.status"
_ENDED_BUT = f"""
    MATCH (job:EmbedJob) {BY_END}
    WHERE job.ended_at IS NOT NULL AND job.id IS NOT NULL AND job.status
"""

# Under another status than that of the index, below it or above it in the alphabet; and those that
# were set aside, because their status was none of the four, and have one of these now.
CHANGED_JOBS = f"""
    {_RANKED_BUT} < 'pending' RETURN job LIMIT $page
  UNION
    {_RANKED_BUT} > 'pending' RETURN job LIMIT $page
  UNION
    {_LEASED_BUT} < 'processing' RETURN job LIMIT $page
  UNION
    {_LEASED_BUT} > 'processing' RETURN job LIMIT $page
  UNION
    {_ENDED_BUT} < 'completed' RETURN job LIMIT $page
  UNION
    {_ENDED_BUT} > 'completed' AND job.status < 'failed' RETURN job LIMIT $page
  UNION
    {_ENDED_BUT} > 'failed' RETURN job LIMIT $page
  UNION
    MATCH (job:EmbedJob) {BY_SET_ASIDE}
    WHERE job.status IN {STATUSES} AND job.set_aside = 'status'
    RETURN job LIMIT $page
"""

# The server counts the nodes of a label as it goes, so both counts are one read each.
COUNT_FOREIGN = f"""
CALL () {{ MATCH (job:EmbedJob) RETURN count(job) AS all_jobs }}
CALL () {{ MATCH (job:TrackedJob) RETURN count(job) AS tracked_jobs }}
CALL () {{
    CALL () {{
        {CHANGED_JOBS.replace("$page", "1")}
    }}
    RETURN count(job) AS changed_jobs
}}
"""
HAS_FOREIGN = "(all_jobs > tracked_jobs OR changed_jobs > 0)"

# A job that another program left without an end of lease is not in the index on it. Those of the
# longest standing come first, so that a bounded sample finds all of them in time.
UNENDED_JOBS = f"""
    MATCH (job:EmbedJob) {BY_STATUS} WHERE job.status = 'processing'
    WITH job LIMIT {UNENDED_SAMPLE}
    WITH job WHERE job.lock_until IS NULL AND {HAS_ID}
"""
