"""Statements on what the workers share beside the jobs."""

from __future__ import annotations

APPEND_EVENT = """
INSERT INTO event (at, kind, owner, reason, job_ids, facts)
VALUES (:at, :kind, :owner, :reason, :job_ids, :facts)
"""

RECENT_EVENTS = """
SELECT * FROM event WHERE (:kind IS NULL OR kind = :kind) ORDER BY seq DESC LIMIT :limit
"""

DELETE_EVENTS = """
DELETE FROM event WHERE seq IN (SELECT seq FROM event WHERE at < :cutoff LIMIT :limit)
"""

READ_STATE = "SELECT value FROM shared_state WHERE name = :name"

READ_STATES = "SELECT name, value FROM shared_state WHERE name >= :first AND name < :end"

WRITE_STATE = """
INSERT INTO shared_state (name, value) VALUES (:name, :value)
ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""

ADD_TO_COUNTER = """
INSERT INTO counter (name, value) VALUES (:name, :amount)
ON CONFLICT (name) DO UPDATE SET value = value + excluded.value
"""

READ_COUNTERS = "SELECT name, value FROM counter ORDER BY name"

READ_BUCKETS = """
SELECT bucket, requests, tokens FROM budget_bucket WHERE provider = :provider AND bucket >= :oldest
"""

SPEND_IN_BUCKET = """
INSERT INTO budget_bucket (provider, bucket, requests, tokens)
VALUES (:provider, :bucket, :requests, :tokens)
ON CONFLICT (provider, bucket)
DO UPDATE SET requests = requests + excluded.requests, tokens = tokens + excluded.tokens
"""

# A grant is never returned twice into the negative, whatever a caller repeats.
RETURN_TO_BUCKET = """
UPDATE budget_bucket
SET requests = max(0, requests - :requests), tokens = max(0, tokens - :tokens)
WHERE provider = :provider AND bucket = :bucket
"""

FORGET_BUCKETS = "DELETE FROM budget_bucket WHERE provider = :provider AND bucket < :oldest"
