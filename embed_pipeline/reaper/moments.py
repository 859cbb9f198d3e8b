"""Moments that PostgreSQL knows and Python does not, and columns that do not tell a moment.

Infinity, or a year beyond 1 to 9999, in one row would make the row unreadable, and a row that
cannot be read would be met again by every sweep and every claim. A `timestamp` without time zone
cannot be compared with the database's now.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime

import psycopg
from psycopg import postgres
from psycopg.abc import AdaptContext, Buffer
from psycopg.types.datetime import DateLoader, TimestampLoader, TimestamptzLoader

from embed_pipeline.errors import SchemaMissing

MOMENTS = ("next_earliest_run_at", "last_heartbeat_at", "lease_expires_at")
_TIMESTAMPTZ = postgres.types["timestamptz"].oid
_CONVERSION = "ALTER COLUMN {column} TYPE timestamptz USING {column} AT TIME ZONE 'UTC'"
# PostgreSQL cannot convert the column under the expression of this one; `reaper init` has it again.
_DROP_CLAIM_INDEX = "DROP INDEX IF EXISTS {table}_reaper_claim_idx; "


def refuse_zoneless(table: str, kinds: Mapping[str, int]) -> None:
    """`kinds` are the types of columns by their oid; raises SchemaMissing with the remedy."""
    wrong = [name for name in MOMENTS if kinds.get(name, _TIMESTAMPTZ) != _TIMESTAMPTZ]
    if not wrong:
        return
    first = _DROP_CLAIM_INDEX.format(table=table) if MOMENTS[0] in wrong else ""
    conversions = ", ".join(_CONVERSION.format(column=name) for name in wrong)
    raise SchemaMissing(
        f"The table {table} must have {' and '.join(wrong)} as timestamptz; with the zone that its"
        f" writers mean run: {first}ALTER TABLE {table} {conversions}; then `embed-pipeline reaper"
        " init`."
    )


def tolerate_far_moments(context: AdaptContext) -> None:
    """From now on they are read as the first or the last moment of Python's calendar."""
    assert context.adapters is not None
    context.adapters.register_loader("timestamptz", _FarTimestamptz)
    context.adapters.register_loader("timestamp", _FarTimestamp)
    context.adapters.register_loader("date", _FarDate)


class _FarTimestamptz(TimestamptzLoader):
    def load(self, data: Buffer) -> datetime:
        try:
            return super().load(data)
        except psycopg.DataError:
            return _end(data)


class _FarTimestamp(TimestampLoader):
    def load(self, data: Buffer) -> datetime:
        try:
            return super().load(data)
        except psycopg.DataError:
            return _end(data).replace(tzinfo=None)


class _FarDate(DateLoader):
    def load(self, data: Buffer) -> date:
        try:
            return super().load(data)
        except psycopg.DataError:
            return _end(data).date()


def _end(data: Buffer) -> datetime:
    text = bytes(data)
    past = text.startswith(b"-") or text.endswith(b"BC")
    return datetime.min.replace(tzinfo=UTC) if past else datetime.max.replace(tzinfo=UTC)
