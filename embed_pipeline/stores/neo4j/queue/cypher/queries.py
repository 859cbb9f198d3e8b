"""Statements that read jobs, one by one or page by page."""

from __future__ import annotations

from embed_pipeline.stores.encoding import FIRST_MS, LAST_MS
from embed_pipeline.stores.neo4j.queue.cypher.parts import (
    BY_END,
    BY_END_OF_LEASE,
    BY_LEASE,
    BY_STATUS,
    BY_TURN,
    CAN_BE_ADOPTED,
    COUNT_FOREIGN,
    EACH_RANK,
    EACH_TIER,
    FIRST_RANK,
    HAS_FOREIGN,
    HAS_ID,
    IN_TURN,
    NOW,
    OF_ENTITY,
    STATUSES,
    UNENDED_JOBS,
)

# A time of any other type would come first, and hide all that are due. Whether a job that has to be
# adopted is due, the next lease finds out, which adopts it.
NEXT_DUE = f"""
{EACH_RANK}
{EACH_TIER}
CALL (rank, tier) {{
    MATCH (job:EmbedJob) {BY_TURN}
    WHERE job.status = 'pending' AND job.model = $model AND job.rank = rank AND job.tier = tier
      AND {FIRST_MS} <= job.available_at <= {LAST_MS} AND {HAS_ID}
    RETURN job.available_at AS due {IN_TURN} LIMIT 1
}}
WITH min(due) AS due
{COUNT_FOREIGN}
RETURN CASE WHEN {HAS_FOREIGN} THEN {NOW} ELSE due END AS due
"""

GET_JOB = "MATCH (job:EmbedJob {id: $id}) RETURN properties(job) AS job"

LATEST_FAILED = f"""
MATCH (job:EmbedJob) {BY_END}
WHERE job.status = 'failed' AND job.ended_at IS NOT NULL AND job.id IS NOT NULL
  AND {HAS_ID} AND ($category IS NULL OR job.error_category = $category)
WITH job ORDER BY job.status DESC, job.ended_at DESC, job.id DESC LIMIT $limit
RETURN properties(job) AS job
"""

# Through the index alone, without loading a job; the count of all is kept by the server.
COUNT_BY_STATUS = f"""
UNWIND {STATUSES} AS status
CALL (status) {{
    MATCH (job:EmbedJob) {BY_STATUS} WHERE job.status = status
    RETURN count(job) AS jobs
}}
WITH collect([status, jobs]) AS counts
CALL () {{ MATCH (job:EmbedJob) RETURN count(job) AS total }}
RETURN counts, total
"""

# Jobs that another program wrote count as pending until the next lease has adopted them.
COUNT_LIVE = f"""
CALL () {{
    MATCH (job:EmbedJob) {BY_TURN}
    WHERE job.status = 'pending' AND job.model = $model AND job.rank IS NOT NULL
      AND job.tier IS NOT NULL AND job.available_at IS NOT NULL
    WITH job LIMIT $limit
    RETURN count(job) AS pending
}}
CALL () {{
    MATCH (job:EmbedJob) {BY_STATUS} WHERE job.status = 'processing'
    WITH job LIMIT $limit
    RETURN count(job) AS processing
}}
CALL () {{ MATCH (job:EmbedJob) RETURN count(job) AS all_jobs }}
CALL () {{ MATCH (job:TrackedJob) RETURN count(job) AS tracked_jobs }}
RETURN pending + all_jobs - tracked_jobs AS pending, processing
"""

SILENT_JOBS = f"""
MATCH (job:EmbedJob) {BY_END_OF_LEASE}
WHERE job.status = 'processing' AND {NOW} <= job.lock_until < $lock_until
  AND job.last_heartbeat_at < $beaten_before AND {HAS_ID}
WITH job LIMIT $limit
RETURN properties(job) AS job ORDER BY job.lock_until
"""

# One hop along the index: the next model of pending jobs by name.
NEXT_MODEL = f"""
MATCH (job:EmbedJob) {BY_TURN}
WHERE job.status = 'pending' AND job.model > $after AND job.rank IS NOT NULL
  AND job.tier IS NOT NULL AND job.available_at IS NOT NULL
RETURN job.model AS model ORDER BY job.status, job.model LIMIT 1
"""

# One hop along the index: the next lease of ours by its token, and whether it has not ended.
NEXT_LEASE = f"""
CALL () {{
    MATCH (job:EmbedJob) {BY_LEASE} WHERE job.status = 'processing' AND job.lease_token > $after
    RETURN job.lease_token AS token, job.lock_owner AS owner
    ORDER BY job.status, job.lease_token LIMIT 1
}}
RETURN token, owner, EXISTS {{
    MATCH (job:EmbedJob) {BY_LEASE}
    WHERE job.status = 'processing' AND job.lease_token = token AND job.lock_until >= {NOW}
}} AS alive
"""

HAS_STALE = f"""
RETURN EXISTS {{
    MATCH (job:EmbedJob) {BY_END_OF_LEASE}
    WHERE job.status = 'processing' AND job.lock_until < {NOW} AND {HAS_ID}
}} OR EXISTS {{
    {UNENDED_JOBS}
    RETURN job
}} AS found
"""


def _malformed(found_by: str, *order: str) -> str:
    """Jobs at either end of an index whose last value is no time.

    Values of other types are in front of all numbers; one in another unit, and NaN, are behind.
    """
    by, time = ", ".join(order), order[-1]
    from_either_end = (
        f"""
        MATCH (job:EmbedJob) {found_by}
        WITH job ORDER BY {ordered} LIMIT $page
        WITH job WHERE NOT coalesce({FIRST_MS} <= {time} <= {LAST_MS}, false) AND {CAN_BE_ADOPTED}
        RETURN job
        """
        for ordered in (by, by.replace(",", " DESC,") + " DESC")
    )
    return "UNION".join(from_either_end)


_MALFORMED_LEASES = _malformed(
    f"{BY_END_OF_LEASE} WHERE job.status = 'processing' AND job.lock_until IS NOT NULL",
    "job.status",
    "job.lock_until",
)
_MALFORMED_ENDS = "UNION".join(
    _malformed(
        f"{BY_END} WHERE job.status = '{status}' AND job.ended_at IS NOT NULL"
        " AND job.id IS NOT NULL",
        "job.status",
        "job.ended_at",
    )
    for status in ("completed", "failed")
)
_MALFORMED_DUE_TIMES = _malformed(
    f"{BY_TURN} WHERE job.status = 'pending' AND job.model = model AND job.rank = rank"
    " AND job.tier = tier AND job.available_at IS NOT NULL",
    *IN_TURN.removeprefix("ORDER BY ").split(", "),
)

# No lease, recovery or cleanup finds these.
MALFORMED_JOBS = f"""
CALL () {{
    {_MALFORMED_LEASES}
  UNION
    {_MALFORMED_ENDS}
  UNION
    UNWIND $models AS model
    {EACH_RANK}
    {EACH_TIER}
    CALL (model, rank, tier) {{
        {_MALFORMED_DUE_TIMES}
    }}
    RETURN job
}}
WITH job LIMIT $page
RETURN collect(elementId(job)) AS places
"""

# Four seeks that each stop at the limit: an index gives one status in order, and jobs that ended
# in the very millisecond where the page before stopped go by their id.
_IN_ORDER = "ORDER BY job.status, job.ended_at, job.id LIMIT $limit"

ENDED_JOBS = f"""
UNWIND $statuses AS status
CALL (status) {{
    MATCH (job:EmbedJob) {BY_END}
    WHERE job.status = status AND job.ended_at = $ended_at AND job.id > $id
    RETURN job {_IN_ORDER}
  UNION ALL
    MATCH (job:EmbedJob) {BY_END}
    WHERE job.status = status AND job.ended_at > $ended_at AND job.id IS NOT NULL
      AND {HAS_ID}
    RETURN job {_IN_ORDER}
}}
WITH job ORDER BY job.ended_at, job.id LIMIT $limit
RETURN properties(job) AS job
"""

_PARKED = f"""
MATCH (job:EmbedJob) {BY_END}
WHERE job.status = 'failed' AND job.ended_at IS NOT NULL AND job.id IS NOT NULL
  AND {HAS_ID} AND coalesce(job.fail_code, '') <> $but
"""

PARKED_JOBS = f"""
{_PARKED}
WITH job ORDER BY job.status DESC, job.ended_at DESC, job.id DESC LIMIT $limit
RETURN properties(job) AS job
"""

COUNT_PARKED = f"{_PARKED} WITH job LIMIT $limit RETURN count(job) AS parked"

WALK_JOBS = """
MATCH (job:EmbedJob) WHERE job.id > $after
WITH job ORDER BY job.id LIMIT $limit
RETURN properties(job) AS job
"""

# A seek per rank and tier, as a lease does it.
COUNT_AHEAD = f"""
CALL () {{
    UNWIND range({FIRST_RANK}, $rank) AS rank
    {EACH_TIER}
    WITH rank, tier, CASE rank WHEN $rank THEN $available_at ELSE 9223372036854775807 END AS end
    CALL (rank, tier, end) {{
        MATCH (job:EmbedJob) {BY_TURN}
        WHERE job.status = 'pending' AND job.model = $model AND job.rank = rank AND job.tier = tier
          AND job.available_at <= end
          AND job.id <> $id
        RETURN job LIMIT $limit
    }}
    RETURN job LIMIT $limit
}}
RETURN count(job) AS ahead
"""

JOBS_OF_ENTITY = f"""
{OF_ENTITY} AND {HAS_ID}
WITH job ORDER BY job.created_at DESC, job.id DESC LIMIT $limit
RETURN properties(job) AS job
"""
