"""A running transaction on the queue's database: its statements, and the time they read."""

from __future__ import annotations

from datetime import datetime

from embed_pipeline.ports.clock import Clock
from embed_pipeline.stores.encoding import from_ms, from_us, to_us
from embed_pipeline.stores.neo4j.driver.database import Row, Tx
from embed_pipeline.stores.neo4j.queue.cypher import control as cypher


class Session:
    """Every statement may use `$now`, the milliseconds of an injected clock; null without one."""

    def __init__(self, tx: Tx, clock: Clock | None) -> None:
        self._tx = tx
        self._clock_us = to_us(clock.now()) if clock else None
        self._now: datetime | None = None

    def all(self, statement: str, /, **parameters: object) -> list[Row]:
        return self._tx.all(statement, **parameters)

    def one(self, statement: str, /, **parameters: object) -> Row:
        return self._tx.one(statement, **parameters)

    def locked(self, statement: str, /, **parameters: object) -> Row:
        """Run a statement that returns the time behind its locks, which is `now` from here on."""
        row = self.one(statement, **parameters)
        self._now = from_ms(row["now"])
        return row

    def timed(self, statement: str, /, **parameters: object) -> Row:
        """The same to the microsecond, for documents: buckets of a short interval need it."""
        row = self.one(statement, now_us=self._clock_us, **parameters)
        self._now = from_us(row["now"])
        return row

    @property
    def now(self) -> datetime:
        if self._now is None:
            self.timed(cypher.NOW)
        assert self._now is not None
        return self._now
