"""A whole worker process for the crash tests; on demand it falls silent in mid-batch.

python -m embed_pipeline_tests.acceptance.embedding_worker HOME OWNER [--minutes-later N]
    [--silent-request N] [--silent-write N] [--concurrency N] [--ahead N]
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.embedding import VectorWrite, WriteReport
from embed_pipeline.ports.clock import SystemClock
from embed_pipeline.ports.embedding_provider import Embedded, Limits
from embed_pipeline.providers.mock import MockProvider
from embed_pipeline.stores.graph.entity_store import GraphEntityStore
from embed_pipeline.stores.queue.job_store import QueueJobStore
from embed_pipeline.stores.queue.rate_limiter import Unlimited
from embed_pipeline.stores.sqlite.graph.backend import SqliteGraph
from embed_pipeline.worker.context import RunLimits, Services
from embed_pipeline.worker.recover import recover_before_work
from embed_pipeline.worker.run import drain
from embed_pipeline.worker.stop import Deadline
from embed_pipeline_tests.acceptance.queues import queue_at

MODEL_NAME, DIMENSIONS, INPUTS = "mock", 8, 5
SILENT, PAID = "silent", "paid.txt"


class LaterClock(SystemClock):
    """The host's clock some minutes later, so that nobody has to wait for a lease to end."""

    def __init__(self, later: timedelta) -> None:
        self._later = later

    def now(self) -> datetime:
        return super().now() + self._later


def fall_silent() -> None:
    """Say so, in order to be killed just then."""
    sys.stdout.write(f"{SILENT}\n")
    sys.stdout.flush()
    threading.Event().wait()


class SlowProvider(MockProvider):
    """Notes in a file which texts were paid for."""

    def __init__(self, home: Path, *, silent_from: int) -> None:
        super().__init__(model_name=MODEL_NAME, dimensions=DIMENSIONS, limits=Limits(inputs=INPUTS))
        self._paid, self._left = home / PAID, silent_from

    def embed(self, texts: Sequence[str]) -> Embedded:
        self._left -= 1
        if self._left == 0:
            fall_silent()
        with self._paid.open("a") as paid:
            paid.write("".join(f"{text}\n" for text in texts))
        return super().embed(texts)


class SlowGraph(GraphEntityStore):
    def __init__(self, home: Path, *, silent_from: int) -> None:
        super().__init__(SqliteGraph(home / "graph.sqlite", mapping=Collection()))
        self._left = silent_from

    def write_vectors(self, writes: Sequence[VectorWrite], *, model: str) -> WriteReport:
        self._left -= 1
        if self._left == 0:
            threading.Event().wait(0.5)  # until nothing more is paid for ahead of this write
            fall_silent()
        return super().write_vectors(writes, model=model)


def tools_at(
    home: Path,
    *,
    later: timedelta = timedelta(0),
    silent_request: int = 0,
    silent_write: int = 0,
    concurrency: int = 1,
    ahead: int = 0,
) -> Services:
    queue = queue_at(home, clock=LaterClock(later))
    return Services(
        jobs=QueueJobStore(queue),
        graph=SlowGraph(home, silent_from=silent_write),
        provider=SlowProvider(home, silent_from=silent_request),
        limiter=Unlimited(),
        run_limits=RunLimits(
            heartbeat_interval=timedelta(milliseconds=20),
            concurrency=concurrency,
            ahead=ahead,
            writers=1,
        ),
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("home", type=Path)
    parser.add_argument("owner")
    for option in ("minutes-later", "silent-request", "silent-write", "ahead"):
        parser.add_argument(f"--{option}", type=int, default=0)
    parser.add_argument("--concurrency", type=int, default=1)
    given = parser.parse_args()
    services = tools_at(
        given.home,
        later=timedelta(minutes=given.minutes_later),
        silent_request=given.silent_request,
        silent_write=given.silent_write,
        concurrency=given.concurrency,
        ahead=given.ahead,
    )
    recover_before_work(services.jobs)
    drain(services, owner=given.owner, deadline=Deadline(services.clock, limit=None))
    services.jobs.close()
    services.graph.close()


if __name__ == "__main__":
    main()
