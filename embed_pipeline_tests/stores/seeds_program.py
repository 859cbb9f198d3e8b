"""Another program that works on the queue as the seeds describe it, and knows nothing of ours.

The recovery is the seed's own query (002, decision 2). Of the other steps the seeds name only the
properties.
"""

from __future__ import annotations

from embed_pipeline_tests.neo4j_bed.client import BedServer

ADD_JOB = """
MERGE (job:EmbedJob {entity_uid: $uid, model: $model, version: $version})
ON CREATE SET job.id = randomUUID(), job.status = 'pending', job.priority = 5,
              job.created_at = timestamp(), job.attempts = 0, job.max_attempts = 3
"""

LEASE_JOBS = """
MATCH (job:EmbedJob)
WHERE job.status = 'pending' OR (job.status = 'processing' AND job.lock_until < timestamp())
WITH job ORDER BY job.priority DESC, job.created_at LIMIT $limit
SET job.status = 'processing', job.lock_owner = $owner, job.lock_until = timestamp() + $duration
RETURN job.id AS id
"""

HEARTBEAT = """
MATCH (job:EmbedJob) WHERE job.status = 'processing' AND job.lock_owner = $owner
SET job.lock_until = timestamp() + $duration
"""

COMPLETE_JOBS = """
MATCH (job:EmbedJob) WHERE job.status = 'processing' AND job.lock_owner = $owner
WITH job LIMIT $limit
SET job.status = 'completed', job.processed_at = timestamp(),
    job.lock_owner = null, job.lock_until = null
"""

FAIL_JOBS = """
MATCH (job:EmbedJob) WHERE job.status = 'processing' AND job.lock_owner = $owner
WITH job LIMIT $limit
SET job.attempts = job.attempts + 1, job.error = 'It failed.'
SET job.status = CASE WHEN job.attempts >= job.max_attempts THEN 'failed' ELSE 'pending' END,
    job.lock_owner = null, job.lock_until = null
"""

FAIL_JOBS_FOR_GOOD = """
MATCH (job:EmbedJob) WHERE job.status = 'processing' AND job.lock_owner = $owner
WITH job LIMIT $limit
SET job.status = 'failed', job.error = 'It failed.', job.lock_owner = null, job.lock_until = null
"""

RELEASE_JOBS = """
MATCH (job:EmbedJob) WHERE job.status = 'processing' AND job.lock_owner = $owner
WITH job LIMIT $limit
SET job.status = 'pending', job.lock_owner = null, job.lock_until = null
"""

SEEDS_RECOVERY = """
MATCH (job:EmbedJob)
WHERE job.status = 'processing'
  AND job.lock_until < timestamp()
SET job.status = 'pending',
    job.lock_owner = null,
    job.lock_until = null
RETURN count(job) as recovered
"""

RESET_FAILED = """
MATCH (job:EmbedJob) WHERE job.status = 'failed' SET job.status = 'pending', job.attempts = 0
"""

RESET_COMPLETED = "MATCH (job:EmbedJob) WHERE job.status = 'completed' SET job.status = 'pending'"

RAW_COUNTS = "MATCH (job:EmbedJob) RETURN job.status AS status, count(*) AS jobs"


class SeedsProgram:
    """By the server's clock, as every program of the seeds."""

    def __init__(self, server: BedServer, *, model: str, owner: str = "theirs") -> None:
        self._server = server
        self._model, self._owner = model, owner

    def add(self, uid: str, *, version: str = "v1") -> None:
        self._server.run(ADD_JOB, uid=uid, model=self._model, version=version)

    def lease(self, limit: int, *, duration: int = 300_000) -> list[str]:
        given = {"limit": limit, "owner": self._owner, "duration": duration}
        return [row["id"] for row in self._server.run(LEASE_JOBS, **given)]

    def step(self, statement: str, *, limit: int = 1, duration: int = 300_000) -> None:
        self._server.run(statement, owner=self._owner, limit=limit, duration=duration)

    def raw_counts(self) -> dict[str, int]:
        return {row["status"]: row["jobs"] for row in self._server.run(RAW_COUNTS)}
