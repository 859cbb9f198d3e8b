"""A worker process for the crash tests: it finishes batch after batch, or dies of one job.

python -m embed_pipeline_tests.acceptance.fragile_worker HOME OWNER
"""

from __future__ import annotations

import os
import signal
import sys
from datetime import timedelta
from pathlib import Path

from embed_pipeline.domain.recovery import QueuePolicy, RecoveryPolicy
from embed_pipeline.stores.queue.job_store import QueueJobStore
from embed_pipeline_tests.acceptance.queues import queue_at
from embed_pipeline_tests.contracts.job_store.scene import MODEL

KILLER = "killer"
FAST = QueuePolicy(recovery=RecoveryPolicy(ladder=(timedelta(0),)))
"""The ladder without its waits; everything else as in production."""


def main(home: Path, owner: str) -> None:
    store = QueueJobStore(queue_at(home), policy=FAST)
    batch = 0
    while True:
        lease = store.lease(owner=owner, model=MODEL, limit=2_000, token=f"{owner}-{batch}")
        if not lease.jobs:
            return
        if any(job.entity_uid == KILLER for job in lease.jobs):
            os.kill(os.getpid(), signal.SIGKILL)
        store.complete(lease, lease.job_ids)
        batch += 1


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
