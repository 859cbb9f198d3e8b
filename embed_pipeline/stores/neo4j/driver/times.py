"""Moments that other programs wrote: a temporal value, milliseconds since 1970, or a string."""

from __future__ import annotations

from datetime import UTC, datetime

import neo4j.time

from embed_pipeline.stores.encoding import aware, read_moment


def moment_of(value: object) -> datetime | None:
    """None for what cannot be read as a time, and for nothing."""
    try:
        match value:
            case neo4j.time.DateTime():
                return aware(value.to_native())
            case neo4j.time.Date():
                return datetime(value.year, value.month, value.day, tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
    return read_moment(value)
