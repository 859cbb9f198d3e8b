"""Real workers, killed with -9."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from embed_pipeline.domain.job import JobStatus
from embed_pipeline.stores.queue.job_store import QueueJobStore
from embed_pipeline_tests.acceptance.fragile_worker import FAST, KILLER
from embed_pipeline_tests.acceptance.queues import queue_at
from embed_pipeline_tests.contracts.job_store.scene import add_jobs, request

WORKER = "embed_pipeline_tests.acceptance.fragile_worker"


def run_worker(home: Path, owner: str) -> int:
    return subprocess.run([sys.executable, "-m", WORKER, str(home), owner], timeout=60).returncode


def test_job_that_kills_its_worker_ends_and_takes_no_innocent_with_it(home: Path) -> None:
    store = QueueJobStore(queue_at(home), policy=FAST)
    add_jobs(store, 1_000, prefix="before")
    store.enqueue([request(KILLER)])
    add_jobs(store, 999, prefix="after")

    deaths = 0
    while run_worker(home, owner := f"run-{deaths}") == -signal.SIGKILL:
        store.recover_owner(owner)
        deaths += 1
        assert deaths <= 15, "the killer is never ended"

    (killer,) = store.failed_jobs()
    status = store.get_queue_status()
    assert (status.completed, status.failed, status.pending) == (1_999, 1, 0)
    assert (killer.entity_uid, killer.status) == (KILLER, JobStatus.FAILED)
    assert (killer.fail_code, killer.fail_reason) == ("timeout", "lease_expired")
    assert (killer.recoveries, killer.attempts, deaths) == (5, 0, 5)
    store.close()
