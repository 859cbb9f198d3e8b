"""The sweep's cost follows the expired rows and not the table: read from EXPLAIN ANALYZE."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, LiteralString

import pytest

from embed_pipeline.reaper import statements as sql
from embed_pipeline_tests.reaper.scene import POLICY, Scene

DONE, LIVE, DEFERRED, EXPIRED, SILENT = 30_000, 2_000, 20_000, 20, 10

FILL = """
INSERT INTO jobs (status, stage, attempt_count, next_earliest_run_at, lease_expires_at,
                  last_heartbeat_at)
SELECT 'done', 'clip', 1, now(), NULL::timestamptz, now() - interval '1 day'
    FROM generate_series(1, {done})
UNION ALL SELECT 'processing', 'asr', 1, now(), now() + interval '10 min', now()
    FROM generate_series(1, {live})
UNION ALL SELECT 'queued', 'clip', 1, now() + interval '10 min', NULL, NULL
    FROM generate_series(1, {deferred})
UNION ALL SELECT 'processing', 'clip', 1, now(), now() - interval '1 min', now()
    FROM generate_series(1, {expired})
UNION ALL SELECT 'processing', 'clip', 1, now(), NULL, now() - interval '1 day'
    FROM generate_series(1, {silent})
"""


@pytest.fixture
def crowd(scene: Scene) -> Scene:
    scene.execute(
        FILL.format(done=DONE, live=LIVE, deferred=DEFERRED, expired=EXPIRED, silent=SILENT)
    )
    scene.execute("VACUUM ANALYZE jobs")
    return scene


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


def explained(scene: Scene, statement: LiteralString, parameters: dict[str, Any]) -> dict[str, Any]:
    with scene.database.transaction() as connection:
        composed = sql.compose("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + statement, "jobs")
        row = connection.execute(composed, parameters).fetchone()
    assert row is not None
    plan: dict[str, Any] = row["QUERY PLAN"][0]["Plan"]
    return plan


def pages(plan: dict[str, Any]) -> int:
    return int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])


def indexes(plan: dict[str, Any]) -> set[str]:
    assert not [node for node in nodes(plan) if node["Node Type"] == "Seq Scan"]
    return {node["Index Name"] for node in nodes(plan) if "Index Name" in node}


SWEEP = {"limit": 500, "skip": [], **POLICY.leases.silence_seconds()}


def test_expired_leases_are_found_by_their_index(crowd: Scene) -> None:
    plan = explained(crowd, sql.LOCK_EXPIRED_ROWS, SWEEP)

    assert plan["Actual Rows"] == EXPIRED
    assert indexes(plan) == {"jobs_reaper_lease_idx"}
    assert pages(plan) < 10 * EXPIRED


def test_silent_rows_are_found_by_their_index(crowd: Scene) -> None:
    plan = explained(crowd, sql.LOCK_SILENT_ROWS, SWEEP)

    assert plan["Actual Rows"] == SILENT
    assert indexes(plan) == {"jobs_reaper_silent_idx"}
    assert pages(plan) < 10 * SILENT


def test_rows_left_alone_are_counted_by_the_same_index(crowd: Scene) -> None:
    plan = explained(crowd, sql.COUNT_ROWS_LEFT_ALONE, {})

    assert indexes(plan) == {"jobs_reaper_silent_idx"}
    assert pages(plan) < 10


def test_requeue_reads_only_the_rows_it_changes(crowd: Scene) -> None:
    found = crowd.execute("SELECT id FROM jobs WHERE lease_expires_at < now()")
    keys = [key for (key,) in found]

    plan = explained(crowd, sql.REQUEUE_ROWS, {"keys": keys, "backoff": 30.0})

    assert indexes(plan) == {"jobs_pkey"}
    assert pages(plan) < 40 * EXPIRED


@pytest.mark.parametrize("statement", [sql.CLAIM_STAGED_ROW, sql.CLAIM_UNSTAGED_ROW])
def test_idle_claim_never_walks_deferred_jobs(crowd: Scene, statement: LiteralString) -> None:
    plan = explained(
        crowd,
        statement,
        {"stage": "clip", "worker_id": "w", "token": "t", "lease": 1.0, "table": "jobs"},
    )

    assert "jobs_reaper_claim_idx" in {node.get("Index Name") for node in nodes(plan)}
    assert pages(plan) < 20


def test_claim_of_a_due_job_stops_at_the_first(crowd: Scene) -> None:
    crowd.execute("UPDATE jobs SET next_earliest_run_at = now() WHERE status = 'queued'")
    crowd.execute("VACUUM ANALYZE jobs")

    plan = explained(
        crowd,
        sql.CLAIM_STAGED_ROW,
        {"stage": "clip", "worker_id": "w", "token": "t", "lease": 1.0, "table": "jobs"},
    )

    assert plan["Actual Rows"] == 1
    assert pages(plan) < 60
