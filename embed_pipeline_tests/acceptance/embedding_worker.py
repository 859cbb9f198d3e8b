"""A whole worker process for the crash test; on demand it stops answering in mid-batch.

python -m embed_pipeline_tests.acceptance.embedding_worker HOME OWNER MINUTES_LATER SILENT_FROM
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from embed_pipeline.model.entity import EntityMapping
from embed_pipeline.ports.clock import SystemClock
from embed_pipeline.ports.embedding_provider import Embedded, Limits
from embed_pipeline.providers.mock import MockProvider
from embed_pipeline.stores.sqlite.entity_store import SqliteEntityStore
from embed_pipeline.stores.sqlite.job_store import SqliteJobStore
from embed_pipeline.stores.sqlite.queue import QueueFile
from embed_pipeline.worker.drain import drain
from embed_pipeline.worker.pace import Pace
from embed_pipeline.worker.recover import recover_before_work
from embed_pipeline.worker.tools import Plan, Tools
from embed_pipeline.worker.unlimited import Unlimited

MODEL_NAME, DIMENSIONS, INPUTS = "mock", 8, 5
SILENT = "silent"


class LaterClock(SystemClock):
    """The host's clock some minutes later, so that nobody has to wait for a lease to end."""

    def __init__(self, later: timedelta) -> None:
        self._later = later

    def now(self) -> datetime:
        return super().now() + self._later


class SlowProvider(MockProvider):
    """Says so when it stops answering, so that it can be killed just then."""

    def __init__(self, *, silent_from: int) -> None:
        super().__init__(model_name=MODEL_NAME, dimensions=DIMENSIONS, limits=Limits(inputs=INPUTS))
        self._left = silent_from

    def embed(self, texts: Sequence[str]) -> Embedded:
        self._left -= 1
        if self._left == 0:
            sys.stdout.write(f"{SILENT}\n")
            sys.stdout.flush()
            threading.Event().wait()
        return super().embed(texts)


def tools_at(home: Path, *, later: timedelta = timedelta(0), silent_from: int = 0) -> Tools:
    queue = QueueFile(home / "queue.sqlite", clock=LaterClock(later))
    return Tools(
        jobs=SqliteJobStore(queue),
        graph=SqliteEntityStore(home / "graph.sqlite", mapping=EntityMapping()),
        provider=SlowProvider(silent_from=silent_from),
        limiter=Unlimited(),
        plan=Plan(heartbeat_interval=timedelta(milliseconds=20), concurrency=1, ahead=0),
    )


def main(home: Path, owner: str, minutes_later: int, silent_from: int) -> None:
    tools = tools_at(home, later=timedelta(minutes=minutes_later), silent_from=silent_from)
    recover_before_work(tools.jobs)
    drain(tools, owner=owner, pace=Pace(tools.clock, limit=None))
    tools.jobs.close()
    tools.graph.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
