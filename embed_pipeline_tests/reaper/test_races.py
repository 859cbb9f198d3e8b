"""Workers and reapers at the same rows at the same time, and deaths at the worst time."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import pytest

from embed_pipeline.reaper import JobQueue, PostgresDatabase, Reaper
from embed_pipeline_tests.reaper.scene import (
    POLICY,
    POLICY_OF_THE_HAMMER,
    SECOND,
    Scene,
    quick,
)


def at_once(*actions: Callable[[], Any]) -> list[Any]:
    """Their answers, started from the same line."""
    barrier = threading.Barrier(len(actions))
    answers: list[Any] = [None] * len(actions)

    def run(number: int) -> None:
        barrier.wait()
        answers[number] = actions[number]()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(actions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    return answers


def after(seconds: float, action: Callable[[], Any]) -> Any:
    time.sleep(seconds)
    return action()


def test_worker_and_reaper_racing_for_one_row_never_both_win(scene: Scene) -> None:
    """Its lease just ended: either the worker still completes it, or the reaper requeues it."""
    policy = quick(0.02 * SECOND, backoff=0 * SECOND)
    worker = JobQueue(PostgresDatabase(scene.url), policy=policy)
    reaper = scene.reaper(policy)
    wins: Counter[str] = Counter()
    random = Random(4)
    for _ in range(60):
        key = scene.add(stage="clip")
        claim = worker.claim("clip", "worker-a")
        assert claim is not None
        time.sleep(0.02)
        head_start = random.uniform(0, 0.002)

        outcome, result = at_once(
            partial(after, head_start, partial(worker.complete, claim)),
            partial(after, 0.002 - head_start, reaper.sweep),
        )

        status = scene.row(key)["status"]
        reaped = [one.job.key for one in result.reaped]
        assert (outcome, status, reaped) in [
            ("done", "done", []),
            ("lease lost", "queued", [key]),
        ]
        wins[outcome] += 1
        scene.execute("DELETE FROM jobs")
    worker._database.close()
    # A race that only one side ever wins would show nothing.
    assert set(wins) == {"done", "lease lost"}, wins


def test_heartbeat_and_reaper_racing_leave_a_live_lease_or_a_requeued_job(scene: Scene) -> None:
    policy = quick(0.02 * SECOND, backoff=0 * SECOND)
    worker = JobQueue(PostgresDatabase(scene.url), policy=policy)
    for _ in range(40):
        key = scene.add(stage="clip")
        claim = worker.claim("clip", "worker-a")
        assert claim is not None
        time.sleep(0.02)

        held, result = at_once(partial(worker.extend, claim), scene.reaper(policy).sweep)

        # Held and then reaped is possible too: the lease of 20 ms may have ended once more.
        status = scene.row(key)["status"]
        assert status == ("queued" if result.requeues else "processing")
        assert held or result.requeues == 1
        assert worker.extend(claim) is (status == "processing")
        scene.execute("DELETE FROM jobs")
    worker._database.close()


def test_two_reapers_at_once_give_every_job_one_verdict(scene: Scene) -> None:
    scene.execute(
        "INSERT INTO jobs (status, stage, attempt_count, lease_expires_at, lease_token)"
        " SELECT 'processing', 'clip', 1 + n %% 5, now() - interval '1 minute', 't'"
        " FROM generate_series(1, 2000) AS n"
    )
    reapers = [Reaper(PostgresDatabase(scene.url), policy=POLICY, batch_size=50) for _ in range(2)]

    results = at_once(*(reaper.sweep for reaper in reapers))
    left = scene.reaper().sweep()
    for reaper in reapers:
        reaper.close()

    reaped = [one.job.key for result in (*results, left) for one in result.reaped]
    assert (len(reaped), len(set(reaped))) == (2000, 2000)
    assert [result.problems for result in results] == [(), ()]
    assert all(result.requeues + result.failures > 0 for result in results)
    counted = Counter(event["details"]["job_id"] for event in scene.events())
    assert (len(counted), set(counted.values())) == (2000, {1})


def test_four_workers_claim_every_job_once(scene: Scene) -> None:
    scene.execute("INSERT INTO jobs (stage) SELECT 'clip' FROM generate_series(1, 400)")

    def drain() -> list[Any]:
        database = PostgresDatabase(scene.url)
        queue, taken = JobQueue(database), []
        while claim := queue.claim("clip", "worker"):
            taken.append(claim.key)
        database.close()
        return taken

    taken = [key for keys in at_once(drain, drain, drain, drain) for key in keys]

    # A worker that finds the head locked by another passes it over, but never takes it too.
    assert len(taken) == len(set(taken)) == 400


def test_crash_between_update_and_commit_leaves_neither_update_nor_event(scene: Scene) -> None:
    keys = [scene.processing(attempt_count=attempts) for attempts in (1, 2, 5)]
    before = scene.execute("SELECT * FROM jobs ORDER BY id")
    command = [sys.executable, "-m", "embed_pipeline_tests.reaper.dying_reaper", scene.url]

    died = subprocess.run(command, timeout=60).returncode

    assert died == -signal.SIGKILL
    deadline = time.monotonic() + 10
    while (result := scene.reaper().rehearse()).requeues + result.failures < 3:
        assert time.monotonic() < deadline
    assert scene.execute("SELECT * FROM jobs ORDER BY id") == before
    assert scene.events() == []
    # Once the server has noticed the death, the next sweep does it all.
    reaped: list[Any] = []
    while len(reaped) < 3:
        assert time.monotonic() < deadline
        reaped += [one.job.key for one in scene.reaper().sweep().reaped]
    assert sorted(reaped) == keys


KILLERS, JOBS, WORKERS = 3, 2_000, 4


def fill(scene: Scene) -> None:
    scene.execute(
        "INSERT INTO jobs (stage, payload) SELECT CASE n %% 3 WHEN 0 THEN 'burnin'"
        " WHEN 1 THEN 'clip' END, CASE WHEN n %% 500 = 7 THEN '\"killer\"'::jsonb END"
        " FROM generate_series(1, %s) AS n",
        JOBS - 500,
    )
    scene.execute("INSERT INTO asr_jobs (stage) SELECT 'asr' FROM generate_series(1, 500)")


def statuses(scene: Scene) -> Counter[str]:
    found = scene.execute(
        "SELECT status, count(*) FROM (SELECT status FROM jobs UNION ALL"
        " SELECT status FROM asr_jobs) AS every GROUP BY status"
    )
    return Counter(dict(found))


class Gang:
    """Worker processes, one of which is killed now and then; the dead are replaced."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._random = Random(9)
        self.started = self.kills = 0
        self._members = [self._start() for _ in range(WORKERS)]

    def _start(self) -> subprocess.Popen[bytes]:
        self.started += 1
        worker = "embed_pipeline_tests.reaper.hard_worker"
        return subprocess.Popen([sys.executable, "-m", worker, self._url, f"worker-{self.started}"])

    def kill_one(self) -> None:
        self._random.choice(self._members).kill()
        self.kills += 1

    def replace_the_dead(self) -> None:
        self._members = [
            member if member.poll() is None else self._start() for member in self._members
        ]

    def end(self) -> None:
        for member in self._members:
            member.kill()
            member.wait()


@pytest.mark.slow
def test_kill_9_of_workers_in_a_loop_loses_no_job_and_doubles_none(scene: Scene) -> None:
    fill(scene)
    reaper = scene.reaper(POLICY_OF_THE_HAMMER)
    gang = Gang(scene.url)
    requeues = failures = 0
    deadline = time.monotonic() + 90
    try:
        while statuses(scene)["done"] + statuses(scene)["failed"] < JOBS:
            assert time.monotonic() < deadline, statuses(scene)
            time.sleep(0.25)
            if gang.kills < 12:
                gang.kill_one()
            gang.replace_the_dead()
            result = reaper.sweep()
            assert result.problems == ()
            requeues, failures = requeues + result.requeues, failures + result.failures
    finally:
        gang.end()

    assert statuses(scene) == Counter(done=JOBS - failures, failed=failures)
    assert failures >= KILLERS
    assert scene.execute(
        "SELECT DISTINCT fail_code, fail_reason FROM jobs WHERE status = 'failed'"
    ) == [("timeout", "lease_expired")]
    counted = Counter(scene.kinds())
    assert counted["reaper:requeued"] == requeues >= gang.kills // 4
    assert counted["reaper:failed(timeout)"] == failures
    assert counted["worker:completed"] == JOBS - failures
    assert counted["worker:claimed"] == JOBS + requeues
    assert_no_two_live_leases(scene)


def assert_no_two_live_leases(scene: Scene) -> None:
    """Each claim of a job comes after the end of the claim before, and ends by its own token."""
    stories: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for event in scene.events():
        details = event["details"]
        story = stories[event["table"], details["job_id"]]
        story.append((event["type"], details["lease_token"]))
    assert len(stories) == JOBS
    for story in stories.values():
        claims, ends = story[::2], story[1::2]
        assert {kind for kind, _ in claims} == {"worker:claimed"}
        assert [token for _, token in claims] == [token for _, token in ends]
        assert {kind for kind, _ in ends[:-1]} <= {"reaper:requeued"}
        assert ends[-1][0] in ("worker:completed", "reaper:failed(timeout)")
