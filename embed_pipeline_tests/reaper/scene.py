"""Adds rows to reap and reads the results, by SQL of the tests' own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from embed_pipeline.reaper import JobQueue, PostgresDatabase, Reaper, ReaperPolicy
from embed_pipeline.reaper.policy import Backoff, StageLeases

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)

POLICY = ReaperPolicy(
    leases=StageLeases(clip=5 * MINUTE, asr=15 * MINUTE, burnin=20 * MINUTE, default=30 * MINUTE),
    max_attempts=5,
)
LOCK_FIELDS = ("locked_by", "lease_token", "lease_expires_at")


def quick(lease: timedelta, *, max_attempts: int = 5, backoff: timedelta = SECOND) -> ReaperPolicy:
    """A policy whose leases end while a test waits."""
    return ReaperPolicy(
        leases=StageLeases(clip=lease, asr=lease, burnin=lease, default=lease),
        backoff=Backoff(ladder=(backoff,)),
        max_attempts=max_attempts,
    )


class Scene:
    def __init__(self, url: str, database: PostgresDatabase, connection: Any) -> None:
        self.url = url
        self.database = database
        self.connection: psycopg.Connection[tuple[Any, ...]] = connection

    def reaper(
        self,
        policy: ReaperPolicy = POLICY,
        *,
        batch_size: int = 500,
        count: Callable[[Mapping[str, int]], None] | None = None,
    ) -> Reaper:
        return Reaper(self.database, policy=policy, batch_size=batch_size, count=count)

    def queue(self, policy: ReaperPolicy = POLICY) -> JobQueue:
        return JobQueue(self.database, policy=policy)

    def add(self, table: str = "jobs", **columns: object) -> Any:
        """A row; a timedelta is a time relative to the database's now."""
        names = sql.SQL(", ").join(map(sql.Identifier, columns))
        values = sql.SQL(", ").join(
            sql.SQL("now() + make_interval(secs => {})").format(value.total_seconds())
            if isinstance(value, timedelta)
            else sql.Literal(value)
            for value in columns.values()
        )
        found = self.connection.execute(
            sql.SQL("INSERT INTO {} ({}) VALUES ({}) RETURNING id").format(
                sql.Identifier(table), names, values
            )
        ).fetchone()
        assert found is not None
        return found[0]

    def processing(self, table: str = "jobs", **columns: object) -> Any:
        """A job that a worker holds; its lease ended a minute ago unless given otherwise."""
        held = {
            "status": "processing",
            "stage": "asr" if table == "asr_jobs" else "clip",
            "attempt_count": 1,
            "locked_by": "worker-a",
            "lease_token": "token-a",
            "lease_expires_at": -MINUTE,
            "last_heartbeat_at": -6 * MINUTE,
        }
        return self.add(table, **{**held, **columns})

    def row(self, key: object, table: str = "jobs") -> dict[str, Any]:
        """The row, with `due_in`: seconds until it may run again."""
        with self.connection.cursor(row_factory=dict_row) as cursor:
            found = cursor.execute(
                sql.SQL(
                    "SELECT *, extract(epoch FROM next_earliest_run_at - now())::float AS due_in"
                    " FROM {} WHERE id = {}"
                ).format(sql.Identifier(table), key)
            ).fetchone()
        assert found is not None
        return found

    def events(self, key: object | None = None) -> list[dict[str, Any]]:
        """`job_events.data`, oldest first."""
        found = self.connection.execute("SELECT job_id, data FROM job_events ORDER BY id")
        return [data for job_id, data in found if key is None or job_id == str(key)]

    def kinds(self, key: object | None = None) -> list[str]:
        return [event["type"] for event in self.events(key)]

    def execute(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        cursor = self.connection.execute(statement.encode(), parameters)
        return cursor.fetchall() if cursor.description else []


POLICY_OF_THE_HAMMER = quick(SECOND, max_attempts=4, backoff=0.05 * SECOND)
"""For the kill -9 test and its worker processes."""
