"""Statements on what the workers share beside the jobs."""

from __future__ import annotations

from functools import lru_cache

APPEND_EVENT = """
INSERT INTO event (at, kind, owner, reason, job_ids, facts)
VALUES (:at, :kind, :owner, :reason, :job_ids, :facts)
"""

RECENT_EVENTS = """
SELECT * FROM event WHERE (:kind IS NULL OR kind = :kind) ORDER BY seq DESC LIMIT :limit
"""

READ_ALL_STATES = "SELECT name, value FROM shared_state"


@lru_cache
def read_states(count: int) -> str:
    return f"{READ_ALL_STATES} WHERE name IN ({', '.join('?' * count)})"


WRITE_STATE = """
INSERT INTO shared_state (name, value) VALUES (:name, :value)
ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""

ADD_TO_COUNTER = """
INSERT INTO counter (name, value) VALUES (:name, :amount)
ON CONFLICT (name) DO UPDATE SET value = value + excluded.value
"""

READ_COUNTERS = "SELECT name, value FROM counter ORDER BY name"
