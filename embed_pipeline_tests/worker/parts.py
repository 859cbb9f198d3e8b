"""The worker's surroundings: the real parts, each with a handle for a test to turn."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import datetime, timedelta
from pathlib import Path

from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.embedding import (
    Bookmark,
    Discovery,
    ModelRecord,
    VectorWrite,
    WriteReport,
)
from embed_pipeline.domain.entity import Entity
from embed_pipeline.domain.job import EntityUid, JobId
from embed_pipeline.domain.lease import Lease, LeaseResult
from embed_pipeline.domain.recovery import QueuePolicy
from embed_pipeline.errors import StoreOverloaded, StoreUnavailable
from embed_pipeline.ports.clock import Clock
from embed_pipeline.ports.embedding_provider import Embedded, Limits
from embed_pipeline.providers.mock import MockProvider
from embed_pipeline.stores.graph.entity_store import GraphEntityStore
from embed_pipeline.stores.queue.job_store import QueueJobStore
from embed_pipeline.stores.sqlite.graph.backend import SqliteGraph
from embed_pipeline.stores.sqlite.queue.backend import QueueFile
from embed_pipeline_tests.clocks import FakeClock

Happening = Callable[[Sequence[str]], object]
"""Something that is done while a request is under way; an `Embedded` it returns is the answer."""

Step = Exception | Happening | None
"""What a request meets: an error, a happening, or just the mock's answer."""


class ScriptedProvider(MockProvider):
    """The mock; the script is used up a step per request, `always` is asked at every one."""

    def __init__(self, *, max_inputs: int = 2048, model_name: str = "mock") -> None:
        super().__init__(
            model_name=model_name, dimensions=8, limits=Limits(inputs=max_inputs, tokens=300_000)
        )
        self.requests: list[list[str]] = []
        self.script: deque[Step] = deque()
        self.always: Happening | None = None

    @property
    def texts(self) -> list[str]:
        """Every text that was sent, in order."""
        return [text for request in self.requests for text in request]

    def answer(self, texts: Sequence[str]) -> Embedded:
        return super().embed(texts)

    def embed(self, texts: Sequence[str]) -> Embedded:
        self.requests.append(list(texts))
        step = self.script.popleft() if self.script else None
        if isinstance(step, Exception):
            raise step
        said = [happening(texts) for happening in (step, self.always) if happening]
        answers = [answer for answer in said if isinstance(answer, Embedded)]
        return answers[0] if answers else self.answer(texts)


class WatchedJobStore(QueueJobStore):
    """The real queue; its heartbeats can be awaited and made to fail."""

    def __init__(self, queue: QueueFile, *, policy: QueuePolicy | None = None) -> None:
        super().__init__(queue, policy=policy)
        self.beats: list[frozenset[JobId]] = []
        self.beaten = threading.Event()
        self.trouble_with_beats: deque[Exception] = deque()

    def heartbeat(self, lease: Lease, job_ids: Sequence[JobId]) -> LeaseResult:
        if self.trouble_with_beats:
            raise self.trouble_with_beats.popleft()
        result = super().heartbeat(lease, job_ids)
        self.beats.append(frozenset(job_ids))
        self.beaten.set()
        return result

    def next_beat(self) -> frozenset[JobId]:
        """The jobs that the next beat extends; waits for it."""
        self.beaten.clear()
        assert self.beaten.wait(10), "no heartbeat came"
        return self.beats[-1]


class WorkerClock(Clock):
    """The worker's own clock: it may be wrong, and a test may watch its waits."""

    def __init__(self, true: FakeClock, *, wrong_by: timedelta = timedelta(0)) -> None:
        self._true, self._wrong_by = true, wrong_by
        self.waits: list[timedelta] = []
        self.on_wait: Callable[[], None] | None = None

    def now(self) -> datetime:
        return self._true.now() + self._wrong_by

    def monotonic(self) -> float:
        return self._true.monotonic()

    def wait(self, event: threading.Event, timeout: timedelta) -> bool:
        self.waits.append(timeout)
        assert len(self.waits) < 1_000, "it waits in a circle"
        if self.on_wait:
            self.on_wait()
        return self._true.wait(event, timeout)


class FragileGraph(GraphEntityStore):
    """The real graph, which can be out of order for a while: for all calls, or for writes."""

    def __init__(self, path: Path, *, mapping: Collection, clock: Clock) -> None:
        self.backend = SqliteGraph(path, mapping=mapping, clock=clock)
        super().__init__(self.backend)
        self.trouble: Exception | None = None
        self.trouble_with_writes: deque[Exception] = deque()
        self.on_write: Callable[[], None] | None = None
        self.too_large_to_write: set[EntityUid] = set()
        self.too_large_to_read: set[EntityUid] = set()
        self.pages: list[int] = []
        """How many entities each page of discovery asked for."""

    def go_down(self) -> None:
        self.trouble = StoreUnavailable("The graph cannot be reached.")

    def come_back(self) -> None:
        self.trouble = None

    def read_entities(self, uids: Sequence[EntityUid]) -> Mapping[EntityUid, Entity]:
        self._suffer()
        _refuse(self.too_large_to_read.intersection(uids))
        return super().read_entities(uids)

    def entities_without_embeddings(
        self, limit: int = 10, *, model: str, after: Bookmark | None = None
    ) -> Discovery:
        self.pages.append(limit)
        return super().entities_without_embeddings(limit, model=model, after=after)

    def embedded_versions(
        self, uids: Sequence[EntityUid], *, model: str
    ) -> Mapping[EntityUid, str]:
        self._suffer()
        return super().embedded_versions(uids, model=model)

    def write_vectors(self, writes: Sequence[VectorWrite], *, model: str) -> WriteReport:
        if self.on_write:
            self.on_write()
        if self.trouble_with_writes:
            raise self.trouble_with_writes.popleft()
        self._suffer()
        _refuse(self.too_large_to_write.intersection(write.uid for write in writes))
        return super().write_vectors(writes, model=model)

    def probe(self) -> None:
        self._suffer()
        super().probe()

    def register_first_model(self, model: str, *, dimensions: int) -> ModelRecord | None:
        self._suffer()
        return super().register_first_model(model, dimensions=dimensions)

    def _suffer(self) -> None:
        if self.trouble is not None:
            raise self.trouble


def _refuse(too_large: Set[EntityUid]) -> None:
    if too_large:
        raise StoreOverloaded("The graph has no memory left for a transaction.")
