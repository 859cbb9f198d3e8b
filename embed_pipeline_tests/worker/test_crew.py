"""The crew's threads: used again for errands of their kind, and gone when they are dismissed."""

from __future__ import annotations

import threading
from concurrent.futures import Future

from embed_pipeline.worker.pool import TaskKind, TaskPool


class Desk:
    """Who handled what came of the errands."""

    def __init__(self) -> None:
        self.pool = TaskPool()
        self.threads: list[threading.Thread] = []

    def send(self, errand: TaskKind, *, until: threading.Event | None = None) -> None:
        def work() -> threading.Thread:
            if until is not None:
                assert until.wait(10)
            return threading.current_thread()

        self.pool.start(errand, work, then=self._note)

    def _note(self, outcome: Future[threading.Thread]) -> None:
        self.threads.append(outcome.result())

    def finish(self) -> None:
        while not self.pool.is_idle:
            self.pool.handle_finished(timeout=10)


def test_errands_of_a_kind_that_follow_each_other_share_a_thread() -> None:
    desk = Desk()

    for _ in range(20):
        desk.send(TaskKind.REQUEST)
        desk.finish()

    assert len(set(desk.threads)) == 1
    desk.pool.shutdown()


def test_errands_at_once_and_of_other_kinds_have_threads_of_their_own() -> None:
    desk, go = Desk(), threading.Event()

    for errand in (TaskKind.REQUEST, TaskKind.REQUEST, TaskKind.WRITE):
        desk.send(errand, until=go)
    go.set()
    desk.finish()

    assert len(set(desk.threads)) == 3
    desk.pool.shutdown()


def test_dismissed_threads_end_those_that_are_busy_after_their_errand() -> None:
    desk, go = Desk(), threading.Event()
    desk.send(TaskKind.WRITE)
    desk.finish()
    desk.send(TaskKind.REQUEST, until=go)

    desk.pool.shutdown()
    go.set()
    desk.finish()

    for thread in desk.threads:
        thread.join(10)
        assert not thread.is_alive()
