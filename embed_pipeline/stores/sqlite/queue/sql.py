"""What SQLite says in its own way; all other statements are those of `stores.queue.sql`."""

from __future__ import annotations

from functools import cache

from embed_pipeline.stores.queue.sql.statements import Dialect

# Whoever writes is alone with the file, so nothing needs a lock of its own.
_DIALECT = Dialect(
    job="embed_job",
    event="event",
    state="shared_state",
    counter="counter",
    row="seq",
    now=":now",
    listed_ids="id IN (SELECT value FROM json_each(:job_ids))",
    listed_names="name IN (SELECT value FROM json_each(:names))",
    pick="IN (",
    end=")",
    lock="",
    skip_locked="",
    greatest="max",
)
rendered = cache(_DIALECT.render)

FIND_BY_KEYS = """
SELECT {known_columns} FROM json_each(:keys) AS wanted
JOIN {job} AS job
  ON job.entity_uid = wanted.value ->> 0
 AND job.model = wanted.value ->> 1
 AND job.version = wanted.value ->> 2
"""

INSERT_JOB = """
INSERT INTO {job} (id, entity_uid, model, version, status, priority, created_at, available_at,
                   max_attempts, force)
VALUES (?, ?, ?, ?, 'pending', ?, ?, ?, ?, ?)
"""


def save_jobs(names: tuple[str, ...]) -> str:
    assignments = ", ".join(f"{name} = :{name}" for name in names)
    return f"UPDATE {{job}} SET {assignments} WHERE id = :id"


DUE_HEADS = """
SELECT rank, tier, due FROM (
    SELECT ranks.column1 AS rank, tiers.column1 AS tier, (
        SELECT available_at FROM {job} WHERE {of_rank_and_tier} AND available_at <= :now
        ORDER BY available_at LIMIT 1
    ) AS due
    FROM {each_rank_and_tier}
) WHERE due IS NOT NULL
"""

APPEND_EVENT = """
INSERT INTO {event} (at, kind, owner, reason, job_ids, facts)
VALUES (:now, :kind, :owner, :reason, :job_ids, :facts)
"""

WRITE_STATE = """
INSERT INTO {state} (name, value) VALUES (:name, :value)
ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""

ADD_TO_COUNTER = """
INSERT INTO {counter} (name, value) VALUES (:name, :amount)
ON CONFLICT (name) DO UPDATE SET value = value + excluded.value
"""
