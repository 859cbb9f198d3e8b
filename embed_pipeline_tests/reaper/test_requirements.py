"""The ten requirements of the stuck-job reaper, one after the other, on a real PostgreSQL."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

from embed_pipeline import telemetry
from embed_pipeline.reaper import JobQueue, heartbeat, policy_of
from embed_pipeline.settings import load_settings
from embed_pipeline_tests.reaper.scene import LOCK_FIELDS, MINUTE, SECOND, Scene, quick

TABLES = pytest.mark.parametrize("table", ["jobs", "asr_jobs"])


@TABLES
def test_expired_lease_below_max_attempts_is_requeued_with_backoff(
    scene: Scene, table: str
) -> None:
    """Requirement 1."""
    key = scene.processing(table, attempt_count=4, max_attempts=5)

    result = scene.reaper().sweep()

    row = scene.row(key, table)
    assert (row["status"], row["attempt_count"]) == ("queued", 4)
    assert [row[name] for name in LOCK_FIELDS] == [None, None, None]
    assert 595 < row["due_in"] <= 600
    assert scene.kinds(key) == ["reaper:requeued"]
    assert result.metrics["reaper.requeues"] == 1
    assert result.metrics["reaper.failures"] == 0


@TABLES
@pytest.mark.parametrize("attempts", [3, 4])
def test_expired_lease_at_max_attempts_fails_with_timeout(
    scene: Scene, table: str, attempts: int
) -> None:
    """Requirement 2."""
    key = scene.processing(table, attempt_count=attempts, max_attempts=3)

    result = scene.reaper().sweep()

    row = scene.row(key, table)
    assert row["status"] == "failed"
    assert (row["fail_code"], row["fail_reason"]) == ("timeout", "lease_expired")
    assert [row[name] for name in LOCK_FIELDS] == [None, None, None]
    (event,) = scene.events(key)
    assert event["type"] == "reaper:failed(timeout)"
    assert event["details"]["locked_by"] == "worker-a"
    assert event["details"]["attempt_count"] == attempts
    assert (result.metrics["reaper.requeues"], result.metrics["reaper.failures"]) == (0, 1)


@pytest.mark.parametrize(
    ("stage", "table", "lease"),
    [("clip", "jobs", 600), ("asr", "asr_jobs", 3600), ("burnin", "jobs", 450), ("x", "jobs", 120)],
)
def test_picking_a_job_sets_the_lease_of_its_stage_from_the_environment(
    scene: Scene, stage: str, table: str, lease: int
) -> None:
    """Requirement 3."""
    settings = load_settings(
        {
            "EMBED_ENV": "test",
            "REAPER_DATABASE_URL": "postgresql://localhost/unused",
            "JOB_SLA_FACTOR": "2",
            "JOB_LEASE_SEC_ASR": "1800",
            "JOB_SLA_FACTOR_BURNIN": "0.5",
            "JOB_LEASE_SEC_DEFAULT": "60",
        }
    ).reaper
    assert settings is not None
    key = scene.add(table, stage=stage)

    claim = scene.queue(policy_of(settings)).claim(stage, "worker-a")

    assert claim is not None
    assert claim.key == key
    row = scene.row(key, table)
    assert row["lease_expires_at"] - row["last_heartbeat_at"] == timedelta(seconds=lease)


def test_heartbeat_moves_lease_and_heartbeat_so_that_a_live_worker_is_not_reaped(
    scene: Scene,
) -> None:
    """Requirement 4, with the seconds scaled down."""
    policy = quick(SECOND)
    key = scene.add(stage="clip")
    claim = scene.queue(policy).claim("clip", "worker-a")
    assert claim is not None
    before = scene.row(key)

    with heartbeat(scene.database, claim, interval=0.2 * SECOND) as beating:
        time.sleep(1.5)
        result = scene.reaper(policy).sweep()

    after = scene.row(key)
    assert (result.requeues, beating.lost, after["status"]) == (0, False, "processing")
    assert after["last_heartbeat_at"] - before["last_heartbeat_at"] >= SECOND
    assert after["lease_expires_at"] - after["last_heartbeat_at"] == SECOND


def test_worker_that_stops_heartbeating_is_reaped(scene: Scene) -> None:
    """Requirement 4, the other way round."""
    policy = quick(0.5 * SECOND)
    key = scene.add(stage="clip")
    claim = scene.queue(policy).claim("clip", "worker-a")
    assert claim is not None
    with heartbeat(scene.database, claim, interval=0.1 * SECOND):
        time.sleep(0.7)

    early = scene.reaper(policy).sweep()
    time.sleep(0.6)
    late = scene.reaper(policy).sweep()

    assert (early.requeues, late.requeues) == (0, 1)
    assert scene.row(key)["status"] == "queued"


def test_backoff_grows_with_every_attempt_and_its_last_step_repeats(scene: Scene) -> None:
    """Requirement 5: 30 s, 2 min, 10 min, and for the fourth time 10 min."""
    keys = [scene.processing(attempt_count=number, max_attempts=9) for number in (1, 2, 3, 4)]

    scene.reaper().sweep()

    waits = [scene.row(key)["due_in"] for key in keys]
    assert waits == pytest.approx([30, 120, 600, 600], abs=5)


def test_requeued_job_is_not_dispatched_before_its_backoff_ends(scene: Scene) -> None:
    """Requirement 5."""
    policy = quick(MINUTE, backoff=SECOND)
    key = scene.processing()
    scene.reaper(policy).sweep()

    at_once = scene.queue(policy).claim("clip", "worker-b")
    time.sleep(1.1)
    later = scene.queue(policy).claim("clip", "worker-b")

    assert at_once is None
    assert later is not None
    assert (later.key, later.attempt) == (key, 2)


def test_every_action_is_an_event_and_a_metric(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requirement 6."""
    emitted: list[tuple[str, dict[str, object]]] = []
    monkeypatch.setattr(telemetry, "emit", lambda name, **facts: emitted.append((name, facts)))
    scene.processing("asr_jobs", last_heartbeat_at=-16 * MINUTE)
    scene.processing("jobs", attempt_count=5)

    scene.reaper().sweep()

    failed, requeued = scene.events()
    assert (failed["type"], failed["table"]) == ("reaper:failed(timeout)", "jobs")
    assert requeued.keys() == {"type", "table", "details"}
    assert (requeued["type"], requeued["table"]) == ("reaper:requeued", "asr_jobs")
    assert requeued["details"]["stage"] == "asr"
    assert requeued["details"]["max_attempts"] == 5
    assert requeued["details"]["backoff_sec"] == 30
    metrics = dict(emitted)["reaper.swept"]["metrics"]
    assert isinstance(metrics, dict)
    assert (metrics["reaper.requeues"], metrics["reaper.failures"]) == (1, 1)
    assert metrics["reaper.scan_duration_ms"] > 0
    assert metrics["reaper.lag_ms"] == pytest.approx(60_000, abs=5_000)


def test_defaults_are_60_seconds_and_queue_names_with_job_overrides() -> None:
    """Requirement 7; the loop itself is in test_service.py."""
    url = {"EMBED_ENV": "test", "REAPER_DATABASE_URL": "postgresql://localhost/unused"}
    queue = {"QUEUE_MAX_ATTEMPTS": "7", "QUEUE_RETRY_BACKOFF_MS_BASE": "1000"}
    job = {"JOB_MAX_ATTEMPTS": "2", "JOB_RETRY_BACKOFF_MS_BASE": "500"}

    plain, queued, jobbed = (
        load_settings(environ).reaper for environ in (url, url | queue, url | queue | job)
    )

    assert plain is not None
    assert queued is not None
    assert jobbed is not None
    assert plain.interval == timedelta(seconds=60)
    assert (plain.max_attempts, queued.max_attempts, jobbed.max_attempts) == (5, 7, 2)
    assert policy_of(plain).backoff.after(1) == timedelta(seconds=30)
    assert policy_of(queued).backoff.after(3) == timedelta(seconds=4)
    assert policy_of(jobbed).backoff.after(3) == timedelta(seconds=2)


@TABLES
def test_null_lease_from_old_worker_is_tolerated(scene: Scene, table: str) -> None:
    """Requirement 8: no lease means the last heartbeat and three leases of the stage."""
    lease = 5 * MINUTE if table == "jobs" else 15 * MINUTE
    nulls = {"lease_expires_at": None, "lease_token": None, "attempt_count": None}
    silent = scene.processing(table, **nulls, last_heartbeat_at=-3 * lease - SECOND)
    quiet = scene.processing(table, **nulls, last_heartbeat_at=-3 * lease + 20 * SECOND)
    unknown = scene.processing(table, **nulls, last_heartbeat_at=None)

    result = scene.reaper().sweep()

    statuses = [scene.row(key, table)["status"] for key in (silent, quiet, unknown)]
    assert statuses == ["queued", "processing", "processing"]
    assert 25 < scene.row(silent, table)["due_in"] <= 30
    assert (result.requeues, result.left_alone) == (1, 1)


def test_row_that_somebody_has_locked_is_passed_over(scene: Scene, url: str) -> None:
    """Requirement 9; the races are in test_races.py."""
    locked, free = scene.processing(), scene.processing()
    worker = JobQueue(scene.database.sibling())._database

    with worker.transaction() as connection:
        connection.execute("SELECT id FROM jobs WHERE id = %s FOR UPDATE", (locked,))
        during = scene.reaper().sweep()
    worker.close()
    after = scene.reaper().sweep()

    assert [one.job.key for one in during.reaped] == [free]
    assert [one.job.key for one in after.reaped] == [locked]


def test_job_of_a_dead_worker_is_finished_by_another(scene: Scene) -> None:
    """Requirement 10: expired lease, heartbeat and backoff in one story."""
    policy = quick(0.4 * SECOND, backoff=0.3 * SECOND)
    queue, reaper = scene.queue(policy), scene.reaper(policy)
    key = scene.add(stage="burnin")
    first = queue.claim("burnin", "worker-a")
    time.sleep(0.5)
    reaper.sweep()
    time.sleep(0.4)

    second = queue.claim("burnin", "worker-b")

    assert first is not None
    assert second is not None
    assert queue.complete(first) == "lease lost"
    assert queue.complete(second) == "done"
    assert scene.row(key)["status"] == "done"
    assert scene.kinds() == [
        "worker:claimed",
        "reaper:requeued",
        "worker:claimed",
        "worker:completed",
    ]
