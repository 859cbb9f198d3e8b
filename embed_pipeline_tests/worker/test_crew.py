"""The crew's threads: used again for errands of their kind, and gone when they are dismissed."""

from __future__ import annotations

import threading
from concurrent.futures import Future

from embed_pipeline.worker.crew import Crew, Errand


class Desk:
    """Who handled what came of the errands."""

    def __init__(self) -> None:
        self.crew = Crew()
        self.threads: list[threading.Thread] = []

    def send(self, errand: Errand, *, until: threading.Event | None = None) -> None:
        def work() -> threading.Thread:
            if until is not None:
                assert until.wait(10)
            return threading.current_thread()

        self.crew.start(errand, work, then=self._note)

    def _note(self, outcome: Future[threading.Thread]) -> None:
        self.threads.append(outcome.result())

    def finish(self) -> None:
        while not self.crew.is_idle:
            self.crew.handle_finished(timeout=10)


def test_errands_of_a_kind_that_follow_each_other_share_a_thread() -> None:
    desk = Desk()

    for _ in range(20):
        desk.send(Errand.REQUEST)
        desk.finish()

    assert len(set(desk.threads)) == 1
    desk.crew.dismiss()


def test_errands_at_once_and_of_other_kinds_have_threads_of_their_own() -> None:
    desk, go = Desk(), threading.Event()

    for errand in (Errand.REQUEST, Errand.REQUEST, Errand.WRITE):
        desk.send(errand, until=go)
    go.set()
    desk.finish()

    assert len(set(desk.threads)) == 3
    desk.crew.dismiss()


def test_dismissed_threads_end_those_that_are_busy_after_their_errand() -> None:
    desk, go = Desk(), threading.Event()
    desk.send(Errand.WRITE)
    desk.finish()
    desk.send(Errand.REQUEST, until=go)

    desk.crew.dismiss()
    go.set()
    desk.finish()

    for thread in desk.threads:
        thread.join(10)
        assert not thread.is_alive()
