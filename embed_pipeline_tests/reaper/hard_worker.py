"""A worker process for the kill -9 test: claim, beat, work, complete, until nothing is left.

python -m embed_pipeline_tests.reaper.hard_worker URL WORKER_ID

It dies of jobs whose payload says "killer", as if the encoder had taken the machine down.
"""

from __future__ import annotations

import os
import signal
import sys
import time

from embed_pipeline.reaper import Claim, JobQueue, PostgresDatabase, Stage, heartbeat
from embed_pipeline_tests.reaper.scene import POLICY_OF_THE_HAMMER as POLICY
from embed_pipeline_tests.reaper.scene import SECOND


def work(database: PostgresDatabase, queue: JobQueue, claim: Claim) -> None:
    if claim.row["payload"] == "killer":
        os.kill(os.getpid(), signal.SIGKILL)
    # A thread and a connection per job are for long jobs; here every twentieth is one.
    if claim.key % 20 == 0:
        with heartbeat(database, claim, interval=0.1 * SECOND):
            time.sleep(0.05)
    queue.complete(claim)


def main(url: str, worker_id: str) -> None:
    database = PostgresDatabase(url)
    queue = JobQueue(database, policy=POLICY)
    while True:
        claims = [queue.claim(stage, worker_id) for stage in Stage]
        for claim in filter(None, claims):
            work(database, queue, claim)
        if not any(claims):
            time.sleep(0.05)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
