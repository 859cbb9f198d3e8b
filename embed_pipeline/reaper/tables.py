"""The job tables: their names, which stage's jobs they hold, and the columns that must fit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from psycopg import postgres

from embed_pipeline.errors import RequestError, SchemaMissing
from embed_pipeline.reaper.policy import Stage

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")  # an index name adds up to 23 letters

TIME_COLUMNS = ("next_earliest_run_at", "last_heartbeat_at", "lease_expires_at")
_TIMESTAMPTZ = postgres.types["timestamptz"].oid
_CONVERSION = "ALTER COLUMN {column} TYPE timestamptz USING {column} AT TIME ZONE 'UTC'"
# PostgreSQL cannot convert a column under this index's expression; `reaper init` makes it again.
_DROP_CLAIM_INDEX = "DROP INDEX IF EXISTS {table}_reaper_claim_idx; "


@dataclass(frozen=True, slots=True)
class JobTable:
    """`unstaged` is the stage of a row that names none."""

    name: str
    unstaged: Stage

    def __post_init__(self) -> None:
        if not _IDENTIFIER.fullmatch(self.name):
            raise RequestError(
                f"{self.name!r} is no table name: letters, digits and underscores, at most 40."
            )


JOBS = JobTable("jobs", unstaged=Stage.CLIP)
ASR_JOBS = JobTable("asr_jobs", unstaged=Stage.ASR)
TABLES = (JOBS, ASR_JOBS)
EVENTS = "job_events"


def table_of(stage: str) -> JobTable:
    return ASR_JOBS if stage == Stage.ASR else JOBS


def refuse_zoneless(table: str, kinds: Mapping[str, int]) -> None:
    """Raise SchemaMissing, with the remedy, for a time column that is no timestamptz.

    A `timestamp` cannot be compared with the database's now. `kinds` are oids of types by column.
    """
    wrong = [name for name in TIME_COLUMNS if kinds.get(name, _TIMESTAMPTZ) != _TIMESTAMPTZ]
    if not wrong:
        return
    first = _DROP_CLAIM_INDEX.format(table=table) if TIME_COLUMNS[0] in wrong else ""
    conversions = ", ".join(_CONVERSION.format(column=name) for name in wrong)
    raise SchemaMissing(
        f"The table {table} must have {' and '.join(wrong)} as timestamptz; with the zone that its"
        f" writers mean run: {first}ALTER TABLE {table} {conversions}; then `embed-pipeline reaper"
        " init`."
    )
