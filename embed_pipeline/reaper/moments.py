"""Moments that PostgreSQL knows and Python does not: infinity, and years beyond 1 to 9999.

One such value in a row would make the row unreadable, and a row that cannot be read would be met
again by every sweep and every claim.
"""

from __future__ import annotations

from datetime import UTC, date, datetime

import psycopg
from psycopg.abc import AdaptContext, Buffer
from psycopg.types.datetime import DateLoader, TimestampLoader, TimestamptzLoader


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
