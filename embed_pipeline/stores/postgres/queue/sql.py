"""What PostgreSQL says in its own way; all other statements are those of `stores.queue.sql`."""

from __future__ import annotations

import re
from functools import cache, partial

from psycopg import sql

from embed_pipeline.stores.postgres.queue.schema import tables
from embed_pipeline.stores.queue.sql.statements import Dialect

# The clock is a subquery: an index cannot be searched by a function that changes while it is read.
_dialect = partial(
    Dialect,
    job="{embed_job}",
    event="{event}",
    state="{shared_state}",
    counter="{counter}",
    row="id",
    listed_ids="id = ANY (:job_ids)",
    listed_names="name = ANY (:names)",
    pick="= ANY (ARRAY(",  # evaluated once, unlike IN, so that no row beyond the limit is locked
    end="))",
    lock="FOR UPDATE",
    skip_locked="FOR UPDATE SKIP LOCKED",
    greatest="greatest",
    clock="SELECT floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
)
_BY_CLOCK = _dialect(now="(SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)")
_IN_TESTS = _dialect(now=":now")


@cache
def rendered(statement: str, schema: str, *, has_clock: bool) -> bytes:
    """With the parameters of psycopg; tables are always qualified and quoted."""
    text = (_IN_TESTS if has_clock else _BY_CLOCK).render(statement).replace("%", "%%")
    text = re.sub(r"(?<!:):(\w+)", r"%(\1)s", text)
    return sql.SQL(text).format(**tables(schema)).as_bytes(None)


NOW = "{clock} AS now"

LOCK_BY_KEYS = """
SELECT {known_columns} FROM {job} AS job
JOIN unnest(:uids::text[], :models::text[], :versions::text[]) AS wanted(uid, model, version)
  ON job.entity_uid = wanted.uid AND job.model = wanted.model AND job.version = wanted.version
ORDER BY job.id FOR UPDATE OF job
"""

INSERT_JOBS = """
INSERT INTO {job} (id, entity_uid, model, version, status, priority, created_at, available_at,
                   max_attempts, force)
SELECT id, uid, model, version, 'pending', priority, {now}, {now}, :max_attempts, force
FROM unnest(:ids::text[], :entity_uid::text[], :model::text[], :version::text[],
            :priority::smallint[], :force::boolean[])
    AS new(id, uid, model, version, priority, force)
ON CONFLICT (entity_uid, model, version) DO NOTHING
RETURNING id
"""


def save_jobs(names: tuple[str, ...]) -> str:
    assignments = ", ".join(f"{name} = new.{name}" for name in names)
    return f"""
UPDATE {{job}} AS job SET {assignments}
FROM json_populate_recordset(NULL::{{job}}, :jobs::json) AS new WHERE job.id = new.id
"""


# Heads that another lease takes just now are passed over; the others stay locked for this one.
VIEW_FOR_LEASE = """
SELECT ({clock}) AS now,
    ARRAY(SELECT ARRAY[name, value] FROM {state} WHERE {listed_names} AND value IS NOT NULL)
        AS documents,
    ARRAY(
        SELECT ARRAY[ranks.column1, tiers.column1, head.due]
        FROM {each_rank_and_tier} CROSS JOIN LATERAL (
            SELECT available_at AS due FROM {job} WHERE {of_rank_and_tier} AND available_at <= {now}
            ORDER BY available_at, id LIMIT 1 FOR UPDATE SKIP LOCKED
        ) AS head
    ) AS heads,
    EXISTS (SELECT FROM {job} WHERE status = 'processing' AND lock_owner = :owner
            AND lease_token = :token) AS is_held
"""

# The clock is read behind the lock: outside of the query that waits for it.
LOCK_STATE = """
WITH locked AS MATERIALIZED (SELECT value FROM {state} WHERE name = :name FOR UPDATE)
SELECT value, ({clock}) AS now FROM locked
"""

CREATE_STATE = "INSERT INTO {state} (name) VALUES (:name) ON CONFLICT DO NOTHING"

WRITE_LEDGER = """
WITH documents AS (
    INSERT INTO {state} (name, value) SELECT * FROM unnest(:names::text[], :values::text[])
    ON CONFLICT (name) DO UPDATE SET value = excluded.value
), counters AS (
    INSERT INTO {counter} AS total (name, slot, value)
    SELECT name, pg_backend_pid() % 16, amount
    FROM unnest(:counters::text[], :amounts::bigint[]) AS added(name, amount)
    ON CONFLICT (name, slot) DO UPDATE SET value = total.value + excluded.value
)
INSERT INTO {event} (at, kind, owner, reason, job_ids, facts)
SELECT {now}, kind, owner, reason, job_ids, facts::json
FROM json_to_recordset(:events::json)
    AS new(kind text, owner text, reason text, job_ids json, facts text)
"""
