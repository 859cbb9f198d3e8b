"""The sweep beyond the requirements: odd rows, odd tables, batches, failures, dry run."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embed_pipeline import telemetry
from embed_pipeline.reaper import PostgresDatabase, Reaper, migrate, sweep
from embed_pipeline_tests.reaper.scene import MINUTE, POLICY, SECOND, Scene

HOUR = timedelta(hours=1)


def test_only_processing_rows_with_an_ended_lease_are_touched(scene: Scene) -> None:
    expired = scene.processing()
    others = [
        scene.processing(lease_expires_at=MINUTE),
        scene.processing(lease_expires_at=timedelta(milliseconds=500)),
        scene.processing(status="queued"),
        scene.processing(status="done"),
        scene.processing(status="failed"),
        scene.add(status="queued"),
    ]
    before = [scene.row(key) for key in others]

    result = scene.reaper().sweep()

    after = [scene.row(key) for key in others]
    assert [one.job.key for one in result.reaped] == [expired]
    for row in before + after:
        del row["due_in"]
    assert after == before


def test_mixed_stages_are_decided_by_their_own_silence(scene: Scene) -> None:
    silent: dict[str, Any] = {"lease_expires_at": None, "last_heartbeat_at": -50 * MINUTE}
    stages = ["clip", "asr", "burnin", "thumbnail", None]
    keys = {stage: scene.processing(**silent, stage=stage) for stage in stages}

    scene.reaper().sweep()

    # Three leases are 15, 45, 60 and, for what is no stage, 90 minutes.
    assert {stage: scene.row(key)["status"] for stage, key in keys.items()} == {
        "clip": "queued",
        "asr": "queued",
        "burnin": "processing",
        "thumbnail": "processing",
        None: "processing",
    }


def test_unknown_stage_with_an_ended_lease_is_requeued(scene: Scene) -> None:
    key = scene.processing(stage="thumbnail")

    scene.reaper().sweep()

    assert scene.row(key)["status"] == "queued"
    assert scene.events(key)[0]["details"]["stage"] == "thumbnail"


def test_nulls_everywhere_but_in_the_lease_are_tolerated(scene: Scene) -> None:
    nulls: dict[str, Any] = dict.fromkeys(("stage", "attempt_count", "locked_by", "lease_token"))
    key = scene.processing(**nulls, last_heartbeat_at=None)

    result = scene.reaper().sweep()

    assert result.problems == ()
    assert scene.row(key)["status"] == "queued"
    assert scene.events(key)[0]["details"]["attempt_count"] == 0


@pytest.mark.parametrize(
    ("lease", "heartbeat"), [("-infinity", None), ("-infinity", "infinity"), (None, "-infinity")]
)
def test_infinite_times_do_not_break_the_sweep(
    scene: Scene, lease: str | None, heartbeat: str | None
) -> None:
    key = scene.processing(lease_expires_at=lease, last_heartbeat_at=heartbeat)

    result = scene.reaper().sweep()

    assert result.problems == ()
    assert scene.row(key)["status"] == "queued"


def test_large_backlog_is_reaped_in_bounded_batches(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches: list[int] = []

    def note(name: str, **facts: Any) -> None:
        if name == "reaper.jobs_requeued":
            batches.append(facts["count"])

    monkeypatch.setattr(telemetry, "emit", note)
    for _ in range(25):
        scene.processing()

    result = scene.reaper(batch_size=10).sweep()

    assert (result.requeues, batches) == (25, [10, 10, 5])
    assert len(scene.events()) == 25


def test_oldest_lease_goes_first_and_is_the_lag(scene: Scene) -> None:
    young = scene.processing(lease_expires_at=-MINUTE)
    old = scene.processing(lease_expires_at=-2 * HOUR)

    result = scene.reaper().sweep()

    assert [one.job.key for one in result.reaped] == [old, young]
    assert 2 * HOUR <= result.lag < 2 * HOUR + MINUTE


def test_stop_ends_the_sweep_between_two_batches(scene: Scene) -> None:
    for _ in range(3):
        scene.processing()
    stop = threading.Event()
    stop.set()

    result = scene.reaper().sweep(stop)

    assert (result.requeues, result.problems) == (0, ())


def test_broken_table_does_not_stop_the_other(scene: Scene) -> None:
    key = scene.processing("asr_jobs")
    scene.execute("ALTER TABLE jobs RENAME TO jobs_gone")

    result = scene.reaper().sweep()

    assert scene.row(key, "asr_jobs")["status"] == "queued"
    (problem,) = result.problems
    assert problem.startswith("jobs: The reaper's database lacks a table;")
    assert "embed-pipeline reaper init" in problem


@pytest.mark.parametrize("column", ["last_heartbeat_at", "lease_expires_at"])
def test_times_without_a_zone_are_reported_with_the_remedy(scene: Scene, column: str) -> None:
    scene.processing(lease_expires_at=None, last_heartbeat_at=-HOUR)
    expired = scene.processing("asr_jobs")
    scene.execute(f"ALTER TABLE jobs ALTER COLUMN {column} TYPE timestamp")

    swept, rehearsed = scene.reaper().sweep(), scene.reaper().rehearse()

    assert swept.problems == rehearsed.problems
    assert swept.problems[0].startswith(f"jobs: The table jobs must have {column} as timestamptz;")
    assert f"ALTER TABLE jobs ALTER COLUMN {column} TYPE timestamptz" in swept.problems[0]
    assert scene.row(expired, "asr_jobs")["status"] == "queued"


def test_row_that_the_tables_own_rules_protect_does_not_hold_up_the_rest(scene: Scene) -> None:
    scene.execute(
        "ALTER TABLE jobs ADD CONSTRAINT stays CHECK (locked_by IS NOT NULL OR payload IS NULL)"
    )
    stubborn = scene.processing(payload="{}", lease_expires_at=-HOUR)
    others = [scene.processing() for _ in range(5)]

    result = scene.reaper(batch_size=3).sweep()

    assert sorted(one.job.key for one in result.reaped) == others
    assert (result.refused, result.problems) == (1, ())
    assert scene.row(stubborn)["status"] == "processing"
    assert scene.kinds(stubborn) == []


PROTECT = """
CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN IF OLD.payload IS NULL THEN RETURN NEW; END IF; RETURN NULL; END $$;
CREATE TRIGGER keep BEFORE UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION keep();
"""
"""A change that a trigger withholds is no error to the database: it only counts one row less."""


@pytest.mark.parametrize("attempts", [1, 5])
def test_row_whose_change_a_trigger_withholds_is_named_and_does_not_hold_up_the_rest(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, attempts: int
) -> None:
    reported: dict[str, dict[str, Any]] = {}
    monkeypatch.setattr(telemetry, "emit", lambda name, **facts: reported.update({name: facts}))
    scene.execute(PROTECT)
    stubborn = scene.processing(payload="{}", lease_expires_at=-HOUR, attempt_count=attempts)
    others = [scene.processing() for _ in range(5)]

    result = scene.reaper(batch_size=3).sweep()

    assert sorted(one.job.key for one in result.reaped) == others
    assert (result.refused, result.problems) == (1, ())
    assert scene.row(stubborn)["status"] == "processing"
    assert scene.kinds(stubborn) == []
    assert reported["reaper.rows_refused"]["job_ids"] == [str(stubborn)]
    assert f"leaves row {stubborn} as it was" in str(reported["reaper.rows_refused"]["error"])


def test_batch_of_protected_rows_alone_does_not_hold_up_what_comes_behind(scene: Scene) -> None:
    scene.execute(PROTECT)
    for _ in range(2):
        scene.processing(payload="{}", lease_expires_at=-HOUR)
    expired = scene.processing()
    silent = scene.processing(lease_expires_at=None, last_heartbeat_at=-HOUR)

    result = scene.reaper(batch_size=2).sweep()

    assert [one.job.key for one in result.reaped] == [expired, silent]
    assert (result.refused, result.problems) == (2, ())


def test_table_that_protects_too_many_rows_is_a_problem_after_what_could_be_done(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "MOST_REFUSED", 2)
    scene.execute(PROTECT)
    for _ in range(4):
        scene.processing(payload="{}", lease_expires_at=-HOUR)
    silent = scene.processing(lease_expires_at=None, last_heartbeat_at=-HOUR)

    result = scene.reaper(batch_size=2).sweep()

    assert [one.job.key for one in result.reaped] == [silent]
    assert result.refused == 2
    assert "jobs: A trigger or rule of jobs leaves row" in result.problems[0]


def test_table_that_refuses_every_change_is_a_problem_and_not_an_endless_loop(
    scene: Scene,
) -> None:
    scene.execute("ALTER TABLE jobs ADD CONSTRAINT words CHECK (status <> 'queued')")
    for _ in range(4):
        scene.processing()

    result = scene.reaper(batch_size=2).sweep()

    assert (result.requeues, result.refused) == (0, 4)
    assert "violates check constraint" in result.problems[0]


def test_dry_run_tells_what_a_sweep_would_do_and_changes_nothing(scene: Scene) -> None:
    scene.processing()
    scene.processing("asr_jobs", attempt_count=5)
    scene.processing(lease_expires_at=None, last_heartbeat_at=-HOUR)
    scene.processing(lease_expires_at=None, last_heartbeat_at=None)
    before = scene.execute("SELECT * FROM jobs ORDER BY id")

    planned = scene.reaper().rehearse()

    unchanged = scene.execute("SELECT * FROM jobs ORDER BY id") == before
    done = scene.reaper().sweep()
    assert unchanged
    assert planned.dry_run
    assert (planned.requeues, planned.failures, planned.left_alone) == (2, 1, 1)
    assert [(reaped.job.key, reaped.decision) for reaped in planned.reaped] == [
        (reaped.job.key, reaped.decision) for reaped in done.reaped
    ]


class Ledger:
    def __init__(self) -> None:
        self.amounts: dict[str, int] = {}

    def __call__(self, amounts: Mapping[str, int]) -> None:
        for name, amount in amounts.items():
            self.amounts[name] = self.amounts.get(name, 0) + amount


def test_counters_add_up_over_sweeps(scene: Scene) -> None:
    ledger = Ledger()
    scene.processing()
    scene.reaper(count=ledger).sweep()
    scene.processing(attempt_count=9)
    scene.reaper(count=ledger).sweep()

    counted = ledger.amounts
    assert counted.pop("reaper_scan_duration_ms") > 0
    assert counted == {"reaper_requeues": 1, "reaper_failures": 1, "reaper_sweeps": 2}


def test_counters_that_cannot_be_stored_do_not_undo_the_sweep(scene: Scene) -> None:
    def refuse(amounts: Mapping[str, int]) -> None:
        raise OSError("no room")

    key = scene.processing()

    result = scene.reaper(count=refuse).sweep()

    assert (result.requeues, scene.row(key)["status"]) == (1, "queued")


def test_tables_with_uuid_keys_and_an_enum_status_work(
    url: str, database: PostgresDatabase, scene: Scene
) -> None:
    scene.execute("DROP TABLE jobs")
    scene.execute("CREATE TYPE job_status AS ENUM ('queued', 'processing', 'done', 'failed')")
    scene.execute(
        "CREATE TABLE jobs (id uuid PRIMARY KEY DEFAULT gen_random_uuid(),"
        " status job_status NOT NULL DEFAULT 'queued')"
    )
    migrate(database)
    requeued, failed = scene.processing(), scene.processing(attempt_count=5)

    result = Reaper(database, policy=POLICY).sweep()
    scene.execute("UPDATE jobs SET next_earliest_run_at = now()")
    claim = scene.queue().claim("clip", "worker-b")

    assert (result.requeues, result.failures, result.problems) == (1, 1, ())
    assert scene.row(failed)["status"] == "failed"
    assert claim is not None
    assert claim.key == requeued
    assert scene.queue().complete(claim) == "done"
    assert scene.kinds(requeued) == ["reaper:requeued", "worker:claimed", "worker:completed"]


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("text", ["a", "it's {odd}"]),
        ("varchar(20)", ["a", "b"]),
        ("char(8)", ["a", "b"]),
        ("integer", [1, 2]),
        ("bigint", [1, 5_000_000_000]),
        ("numeric", [1, 2.5]),
        ("uuid", [str(uuid.UUID(int=1)), str(uuid.UUID(int=2))]),
    ],
)
def test_keys_of_any_type_are_requeued_failed_and_claimed(
    database: PostgresDatabase, scene: Scene, kind: str, keys: list[object]
) -> None:
    scene.execute("DROP TABLE jobs")
    scene.execute(f"CREATE TABLE jobs (id {kind} PRIMARY KEY, status text)")
    migrate(database)
    requeued, failed = (
        scene.processing(id=key, attempt_count=count)
        for key, count in zip(keys, (1, 5), strict=True)
    )

    result = Reaper(database, policy=POLICY).sweep()
    scene.execute("UPDATE jobs SET next_earliest_run_at = now()")
    claim = scene.queue().claim("clip", "worker-b")

    assert (result.requeues, result.failures, result.problems) == (1, 1, ())
    assert scene.row(failed)["status"] == "failed"
    assert claim is not None
    assert claim.key == requeued
    assert scene.queue().extend(claim)
    assert scene.queue().complete(claim) == "done"
    kinds = ["reaper:failed(timeout)", "reaper:requeued", "worker:claimed", "worker:completed"]
    assert sorted(scene.kinds()) == kinds


# Never within half a minute of now, so that a slow machine gets the same answer.
TIMES = st.none() | st.integers(-120, 60).map(lambda minutes: minutes * MINUTE - 30 * SECOND)
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["clip", "asr", "burnin", "other", None]),
        st.none() | st.integers(0, 6),
        st.none() | st.integers(0, 6),
        TIMES,
        TIMES,
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS)
def test_sweep_does_with_any_row_what_the_policy_says(scene: Scene, rows: list[Any]) -> None:
    """The statement and `policy.decide` know the same rules."""
    scene.execute("TRUNCATE jobs, job_events")
    expected = {}
    for stage, attempts, maximum, lease, heartbeat in rows:
        key = scene.processing(
            stage=stage,
            attempt_count=attempts,
            max_attempts=maximum,
            lease_expires_at=lease,
            last_heartbeat_at=heartbeat,
        )
        silence = 3 * POLICY.leases.of(stage)
        end = heartbeat + silence if lease is None and heartbeat is not None else lease
        stuck = end is not None and end <= timedelta(0)
        ended = (attempts or 0) >= (5 if maximum is None else maximum)
        expected[key] = "processing" if not stuck else "failed" if ended else "queued"

    scene.reaper(batch_size=3).sweep()

    assert {key: scene.row(key)["status"] for key in expected} == expected
    assert len(scene.events()) == sum(status != "processing" for status in expected.values())
