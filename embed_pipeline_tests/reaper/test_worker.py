"""The worker side: claim, heartbeat, complete, fail."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from embed_pipeline.errors import RequestError, StoreUnavailable
from embed_pipeline.reaper import Claim, JobQueue, PostgresDatabase, Stage, heartbeat
from embed_pipeline.reaper.heartbeat import Heartbeat
from embed_pipeline.reaper.tables import JobTable
from embed_pipeline_tests.clocks import FakeClock
from embed_pipeline_tests.reaper.scene import MINUTE, SECOND, Scene, quick


def claimed(scene: Scene, stage: str = "clip", worker_id: str = "worker-a", **policy: Any) -> Claim:
    claim = scene.queue(**policy).claim(stage, worker_id)
    assert claim is not None
    return claim


def test_claim_sets_worker_token_attempt_and_heartbeat(scene: Scene) -> None:
    key = scene.add(stage="clip", attempt_count=2, payload='{"video": 7}')

    claim = claimed(scene)

    row = scene.row(key)
    assert (row["status"], row["locked_by"], row["attempt_count"]) == ("processing", "worker-a", 3)
    assert row["lease_token"] == claim.token
    assert row["last_heartbeat_at"] is not None
    assert claim.row["payload"] == {"video": 7}


def test_every_claim_has_a_token_of_its_own(scene: Scene) -> None:
    scene.add(stage="clip")
    scene.add(stage="clip")

    assert claimed(scene).token != claimed(scene).token


def test_claim_takes_the_longest_due_job_of_its_stage(scene: Scene) -> None:
    scene.add(stage="clip", next_earliest_run_at=MINUTE)
    late = scene.add(stage="clip", next_earliest_run_at=-SECOND)
    early = scene.add(stage="clip", next_earliest_run_at=-MINUTE)
    never_set = scene.add(stage="clip", next_earliest_run_at=None)
    scene.add(stage="burnin", next_earliest_run_at=-2 * MINUTE)

    taken = [claimed(scene).key for _ in range(3)]

    assert taken == [never_set, early, late]
    assert scene.queue().claim("clip", "worker-a") is None


def test_job_without_stage_is_of_its_tables_stage(scene: Scene) -> None:
    plain, asr = scene.add(stage=None), scene.add("asr_jobs", stage=None)

    assert scene.queue().claim("burnin", "worker-a") is None
    assert claimed(scene, "clip").key == plain
    assert claimed(scene, "asr").key == asr
    assert scene.row(plain)["stage"] == "clip"


def test_claim_can_name_another_table(scene: Scene) -> None:
    key = scene.add("asr_jobs", stage="clip")

    claim = scene.queue().claim("clip", "w", table=JobTable("asr_jobs", unstaged=Stage.ASR))

    assert claim is not None
    assert claim.key == key


@pytest.mark.parametrize("name", ["", "jobs; DROP TABLE jobs", 'a"b', "1st", "x" * 41])
def test_what_is_no_table_name_never_reaches_a_query(name: str) -> None:
    with pytest.raises(RequestError, match="is no table name"):
        JobTable(name, unstaged=Stage.CLIP)


def test_claim_of_a_row_with_an_infinite_time_works(scene: Scene) -> None:
    key = scene.add(stage="clip", next_earliest_run_at="-infinity")

    assert claimed(scene).key == key


def test_complete_sets_done_and_clears_the_lock(scene: Scene) -> None:
    key = scene.add(stage="clip")

    outcome = scene.queue().complete(claimed(scene))

    row = scene.row(key)
    assert (outcome, row["status"], row["locked_by"]) == ("done", "done", None)
    assert row["lease_expires_at"] is None


def test_fail_is_final_with_code_and_reason(scene: Scene) -> None:
    key = scene.add(stage="clip")

    outcome = scene.queue().fail(claimed(scene), code="decode", reason="no video stream")

    row = scene.row(key)
    assert (outcome, row["status"], row["locked_by"]) == ("failed", "failed", None)
    assert (row["fail_code"], row["fail_reason"]) == ("decode", "no video stream")
    assert scene.events(key)[-1]["details"]["reason"] == "no video stream"


def test_fail_with_retry_comes_back_with_backoff_until_no_attempt_is_left(scene: Scene) -> None:
    key = scene.add(stage="clip", max_attempts=2)

    first = scene.queue().fail(claimed(scene), code="io", reason="disk", retry=True)
    wait = scene.row(key)["due_in"]
    scene.execute("UPDATE jobs SET next_earliest_run_at = now()")
    second = scene.queue().fail(claimed(scene), code="io", reason="disk", retry=True)

    assert (first, second) == ("queued", "failed")
    assert wait == pytest.approx(30, abs=2)
    assert scene.row(key)["fail_code"] == "io"


def test_slow_worker_that_lost_its_lease_cannot_complete(scene: Scene) -> None:
    key = scene.add(stage="clip")
    queue = scene.queue(quick(0.1 * SECOND, backoff=0 * SECOND))
    slow = queue.claim("clip", "worker-a")
    time.sleep(0.2)
    scene.reaper(quick(SECOND, backoff=0 * SECOND)).sweep()
    quick_one = queue.claim("clip", "worker-b")
    assert slow is not None
    assert quick_one is not None

    outcomes = [
        queue.complete(slow),
        queue.fail(slow, code="x", reason="y"),
        queue.fail(slow, code="x", reason="y", retry=True),
        queue.extend(slow),
    ]

    row = scene.row(key)
    assert outcomes == ["lease lost", "lease lost", "lease lost", False]
    assert (row["status"], row["locked_by"]) == ("processing", "worker-b")
    assert row["lease_token"] == quick_one.token
    assert queue.complete(quick_one) == "done"
    assert queue.complete(slow) == "lease lost"


def test_same_worker_that_claims_its_own_lost_job_again_is_not_its_former_self(
    scene: Scene,
) -> None:
    scene.add(stage="clip")
    queue = scene.queue(quick(0.1 * SECOND, backoff=0 * SECOND))
    former = queue.claim("clip", "worker-a")
    time.sleep(0.2)
    scene.reaper(quick(SECOND, backoff=0 * SECOND)).sweep()
    current = queue.claim("clip", "worker-a")
    assert former is not None
    assert current is not None

    assert queue.complete(former) == "lease lost"
    assert queue.complete(current) == "done"


def test_call_repeated_after_a_lost_answer_learns_that_it_was_done(scene: Scene) -> None:
    key = scene.add(stage="clip")
    claim = claimed(scene)

    twice = [scene.queue().complete(claim), scene.queue().complete(claim)]

    assert twice == ["done", "done"]
    assert scene.kinds(key) == ["worker:claimed", "worker:completed"]


def test_lease_that_only_ran_out_can_still_be_completed_or_revived(scene: Scene) -> None:
    scene.add(stage="clip")
    claim = scene.queue(quick(0.05 * SECOND)).claim("clip", "worker-a")
    assert claim is not None
    time.sleep(0.1)

    queue = scene.queue(quick(60 * SECOND))
    revived = queue.extend(claim)
    reaped = scene.reaper(quick(SECOND)).sweep().requeues

    assert (revived, reaped) == (True, 0)
    assert queue.complete(claim) == "done"


def test_heartbeat_notices_a_lost_lease_and_calls_back(scene: Scene) -> None:
    key = scene.add(stage="clip")
    claim = claimed(scene)
    called = threading.Event()

    with heartbeat(scene.database, claim, interval=0.05 * SECOND, on_lost=called.set) as beating:
        time.sleep(0.2)
        before = beating.lost
        scene.execute("UPDATE jobs SET lease_token = 'of another' WHERE id = %s", key)
        noticed = beating.wait_lost(5 * SECOND)

    assert (before, noticed, beating.lost, called.is_set()) == (False, True, True, True)


def test_heartbeat_ends_quietly_when_its_job_was_completed(scene: Scene) -> None:
    scene.add(stage="clip")
    claim = claimed(scene)

    with heartbeat(scene.database, claim) as beating:
        time.sleep(0.1)

    assert scene.queue().complete(claim) == "done"
    assert not beating.lost


class Unreachable(JobQueue):
    """Beats come through until `beats` are used up."""

    def __init__(self, beats: int) -> None:
        super().__init__(PostgresDatabase("postgresql://localhost/unused"))
        self.beats = beats

    def extend(self, claim: Claim) -> bool:
        self.beats -= 1
        if self.beats < 0:
            raise StoreUnavailable("gone")
        return True


def test_heartbeat_that_cannot_reach_the_database_gives_up_before_the_lease_ends() -> None:
    clock = FakeClock()
    claim = Claim(
        table=JobTable("jobs", unstaged=Stage.CLIP),
        key=1,
        stage="clip",
        worker_id="w",
        token="t",
        attempt=1,
        max_attempts=None,
        lease=60 * SECOND,
        row={},
    )
    beating = Heartbeat(Unreachable(beats=3), claim, interval=10 * SECOND, clock=clock)

    beating.run()

    # The last good beat was at 20 s, so the lease ends at 80 s.
    assert beating.lost
    assert clock.monotonic() == 70


def test_heartbeat_never_comes_less_often_than_two_fit_into_the_lease() -> None:
    claim = Claim(
        table=JobTable("jobs", unstaged=Stage.CLIP),
        key=1,
        stage="clip",
        worker_id="w",
        token="t",
        attempt=1,
        max_attempts=None,
        lease=10 * SECOND,
        row={},
    )
    clock = FakeClock()
    beating = Heartbeat(Unreachable(beats=1), claim, interval=12 * SECOND, clock=clock)

    beating.run()

    assert clock.monotonic() == 8  # beats at 0, 4 and 8 s
