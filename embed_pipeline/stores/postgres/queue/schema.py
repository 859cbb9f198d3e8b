"""The queue's tables in a schema of their own; `embed-pipeline init` creates them."""

from __future__ import annotations

from psycopg import sql

from embed_pipeline.domain.job import HIGHEST_PRIORITY, LOWEST_PRIORITY
from embed_pipeline.domain.lease import SMALL_FROM_STRIKES, SOLO_FROM_STRIKES, Tier
from embed_pipeline.errors import ConfigurationError, SchemaMissing
from embed_pipeline.stores.postgres.connection import Connection
from embed_pipeline.stores.queue.sql.statements import HAD_NO_TEXT, MALFORMED_INDEX, NO_ERROR

VERSION = 3
TABLES = ("embed_job", "event", "shared_state", "counter", "queue_version")

# Times are milliseconds since 1970, as in the other backends: `to_timestamp(created_at / 1000.0)`.
# Text compares by code point, as Python does. Leases and completions leave many dead rows behind,
# so autovacuum comes early.
_CREATE = """
CREATE TABLE {embed_job} (
    id text COLLATE "C" PRIMARY KEY,
    entity_uid text COLLATE "C" NOT NULL,
    model text COLLATE "C" NOT NULL, version text COLLATE "C" NOT NULL,
    status text NOT NULL CHECK (status IN ('pending', 'processing', 'completed', 'failed')),
    priority smallint NOT NULL CHECK (priority BETWEEN {lowest} AND {highest}),
    rank smallint GENERATED ALWAYS AS (-priority) STORED,
    created_at bigint NOT NULL, available_at bigint NOT NULL, processed_at bigint,
    lock_owner text COLLATE "C", lock_until bigint, last_heartbeat_at bigint,
    lease_token text COLLATE "C", done_token text COLLATE "C",
    attempts integer NOT NULL DEFAULT 0, max_attempts integer NOT NULL,
    recoveries integer NOT NULL DEFAULT 0, recovered_at bigint,
    strikes integer NOT NULL DEFAULT 0,
    tier smallint GENERATED ALWAYS AS (
        CASE WHEN strikes >= {solo_from} THEN {solo} WHEN strikes >= {small_from} THEN {small}
        ELSE {normal} END) STORED,
    force boolean NOT NULL DEFAULT false,
    again smallint NOT NULL DEFAULT 0 CHECK (again BETWEEN 0 AND 2),
    error text, error_type text, error_stack text, fail_code text, fail_reason text,
    error_category text CHECK (error_category IN ('TRANSIENT', 'PERMANENT', 'CRITICAL')),
    UNIQUE (entity_uid, model, version)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- Equality down to the due time, so that a lease seeks and never walks deferred jobs.
CREATE INDEX job_ready ON {embed_job} (model, rank, tier, available_at, id)
    WHERE status = 'pending';
-- A job without an end of its lease is stale.
CREATE INDEX job_expiry ON {embed_job} ((coalesce(lock_until, 0))) WHERE status = 'processing';
CREATE INDEX job_holder ON {embed_job} (lock_owner, lease_token) WHERE status = 'processing';
CREATE INDEX job_ended ON {embed_job} (processed_at NULLS FIRST, id)
    WHERE status IN ('completed', 'failed');
CREATE INDEX job_failed ON {embed_job} (processed_at NULLS FIRST, id) WHERE status = 'failed';
CREATE INDEX job_malformed ON {embed_job} {malformed};

CREATE TABLE {event} (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at bigint NOT NULL, kind text NOT NULL, owner text, reason text,
    job_ids json NOT NULL, facts json NOT NULL
);
CREATE INDEX event_at ON {event} (at);

-- Switch, breakers, health and budgets: one small document each. A name without a value was locked.
CREATE TABLE {shared_state} (name text COLLATE "C" PRIMARY KEY, value text) WITH (fillfactor = 50);

-- Server processes add to rows of their own, so that their transactions do not wait for each other.
CREATE TABLE {counter} (
    name text COLLATE "C", slot smallint, value bigint NOT NULL, PRIMARY KEY (name, slot)
) WITH (fillfactor = 50);

CREATE TABLE {queue_version} (version integer NOT NULL);
INSERT INTO {queue_version} VALUES ({version})
"""

_UPGRADES = {
    1: "CREATE INDEX job_malformed ON {embed_job} {malformed}",
    # They keep the time of their end. An event names at most 1 000 of them.
    2: """
INSERT INTO {event} (at, kind, reason, job_ids, facts)
SELECT extract(epoch FROM clock_timestamp()) * 1000, 'jobs.completed', 'nothing to embed',
    json_agg(id), json_build_object() FROM (
        SELECT id, (row_number() OVER (ORDER BY id) - 1) / 1000 AS page
        FROM {embed_job} WHERE {had_no_text}
    ) AS jobs GROUP BY page;
UPDATE {embed_job} SET status = 'completed', {no_error} WHERE {had_no_text}
""",
}
"""What makes a queue of this version one of the next; statements end with `;` and a new line."""

_WORDS: dict[str, sql.Composable] = {
    "lowest": sql.Literal(LOWEST_PRIORITY),
    "highest": sql.Literal(HIGHEST_PRIORITY),
    "small_from": sql.Literal(SMALL_FROM_STRIKES),
    "solo_from": sql.Literal(SOLO_FROM_STRIKES),
    **{tier.name.lower(): sql.Literal(int(tier)) for tier in Tier},
    "malformed": sql.SQL(MALFORMED_INDEX),
    "had_no_text": sql.SQL(HAD_NO_TEXT),
    "no_error": sql.SQL(NO_ERROR),
}

# Two `init` at once take turns; the lock ends with the transaction.
_LOCK = "SELECT pg_advisory_xact_lock(hashtext('embed_pipeline'), hashtext(%(schema)s))"
_FIND_SCHEMA = "SELECT to_regnamespace(quote_ident(%(schema)s)) AS found"
_RELATIONS = """
SELECT relname AS name FROM pg_class
WHERE relnamespace = to_regnamespace(quote_ident(%(schema)s))
  AND relkind IN ('r', 'p', 'v', 'm', 'f')
"""


def tables(schema: str) -> dict[str, sql.Composable]:
    """Each table, qualified and quoted, by its plain name; for a statement with parameters."""
    return {table: sql.Identifier(schema.replace("%", "%%"), table) for table in TABLES}


def check(connection: Connection, *, schema: str) -> None:
    """Raise SchemaMissing unless the queue of this version is there."""
    version = _version(connection, schema)
    place = f"the schema {schema} of the database {connection.info.dbname}"
    if version is None:
        raise SchemaMissing(f"There is no queue in {place}: run `embed-pipeline init`.")
    if version != VERSION:
        remedy = (
            "run `embed-pipeline init`" if version < VERSION else "use the program that made it"
        )
        raise SchemaMissing(
            f"The queue in {place} has version {version}, this program needs {VERSION}: {remedy}."
        )


def refuse_foreign(connection: Connection, *, schema: str) -> None:
    """Refuse a schema with tables that `create` did not make. Changes nothing."""
    foreign = _relations(connection, schema)
    if _version(connection, schema) is not None:
        foreign -= {*TABLES}
    if foreign:
        raise ConfigurationError(
            [
                f"The schema {schema} holds tables of another program"
                f" ({', '.join(sorted(foreign)[:3])}): name another one by EMBED_QUEUE_SCHEMA."
            ]
        )


def create(connection: Connection, *, schema: str) -> None:
    """Make schema and tables where they are missing, bring older ones up; in a transaction."""
    connection.execute(_LOCK, {"schema": schema})
    refuse_foreign(connection, schema=schema)
    # Not IF NOT EXISTS: it asks for the right to create a schema even where there is one already.
    if not next(connection.execute(_FIND_SCHEMA, {"schema": schema}))["found"]:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
    found = _version(connection, schema)
    if found is None:
        _run(connection, schema, _CREATE)
    elif found < VERSION:
        for version in range(found, VERSION):
            _run(connection, schema, _UPGRADES[version])
        _run(connection, schema, "UPDATE {queue_version} SET version = {version}")
    check(connection, schema=schema)


def _run(connection: Connection, schema: str, statements: str) -> None:
    words = tables(schema) | _WORDS | {"version": sql.Literal(VERSION)}
    for statement in statements.split(";\n"):
        connection.execute(sql.SQL(statement).format(**words), {})


def _relations(connection: Connection, schema: str) -> set[str]:
    return {row["name"] for row in connection.execute(_RELATIONS, {"schema": schema})}


def _version(connection: Connection, schema: str) -> int | None:
    if "queue_version" not in _relations(connection, schema):
        return None
    statement = sql.SQL("SELECT version FROM {queue_version}").format(**tables(schema))
    row = connection.execute(statement, {}).fetchone()
    return None if row is None else row["version"]
