"""Work beside the run's own thread; what comes of it is handled in that thread alone."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from enum import Enum, auto
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


class TaskKind(Enum):
    LEASE = auto()
    REQUEST = auto()
    WRITE = auto()


class TaskPool:
    """Daemon threads: a provider that never answers does not keep the process.

    Only the thread that owns the crew starts errands and handles their outcomes, so nothing that
    it decides with needs a lock; an interrupt of it cannot tear a paid answer apart.
    """

    def __init__(self) -> None:
        self._under_way: dict[Future[Any], tuple[TaskKind, Callable[[Future[Any]], None]]] = {}
        self._idle: dict[TaskKind, deque[_PoolThread]] = {errand: deque() for errand in TaskKind}
        self._dismissed = threading.Event()

    @property
    def is_idle(self) -> bool:
        return not self._under_way

    def busy(self, errand: TaskKind) -> int:
        return sum(kind is errand for kind, _ in self._under_way.values())

    def start(
        self, errand: TaskKind, work: Callable[[], T], *, then: Callable[[Future[T]], None]
    ) -> None:
        """Known before it begins: an interrupt in here finds what it has to wait for."""
        future: Future[T] = Future()
        self._under_way[future] = (errand, then)
        idle = self._idle[errand]
        hand = idle.pop() if idle else _PoolThread(errand, idle, self._dismissed)
        hand.take(future, work)

    def handle_finished(self, *, timeout: float | None = None) -> bool:
        """Wait for the first errand to end and handle all that have; False when none did in time.

        An error of handling one leaves the others for the next call.
        """
        finished, _ = wait(self._under_way, timeout=timeout, return_when=FIRST_COMPLETED)
        # In the order in which they were started: as if one had come after the other.
        for future in [future for future in self._under_way if future in finished]:
            _, then = self._under_way.pop(future)
            then(future)
        return bool(finished)

    def shutdown(self) -> None:
        """Nothing more will be started: the threads end, a busy one after its errand."""
        self._dismissed.set()
        for idle in self._idle.values():
            while idle:
                idle.pop().go()

    def abandon(self, errand: TaskKind, *, late: Callable[[Future[Any]], None]) -> None:
        """Wait no longer; what still comes of such errands is handled in their own threads."""
        for future, (kind, _) in self._under_way.items():
            if kind is errand:
                future.add_done_callback(late)


class _PoolThread:
    """A thread that does one kind of errand after the other.

    The same thread for the same kind: what one has allocated for a large answer is used again for
    the next, instead of being kept by ever more threads.
    """

    def __init__(
        self, errand: TaskKind, idle: deque[_PoolThread], dismissed: threading.Event
    ) -> None:
        self._idle, self._dismissed = idle, dismissed
        self._inbox: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        name = f"embed-{errand.name.lower()}"
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def take(self, future: Future[T], work: Callable[[], T]) -> None:
        self._inbox.put(lambda: _perform(future, work, done=self._rest))

    def go(self) -> None:
        self._inbox.put(None)

    def _work(self) -> None:
        while (job := self._inbox.get()) is not None:
            job()
            del job  # with all that it holds, until the next one comes

    def _rest(self) -> None:
        self._idle.append(self)
        if self._dismissed.is_set():  # perhaps too late to be seen among the idle ones
            self.go()


def _perform(future: Future[T], work: Callable[[], T], *, done: Callable[[], None]) -> None:
    """Idle before its outcome is known, so that whoever handles that can use the hand again."""
    try:
        result = work()
    except BaseException as error:  # handed to the one who handles the outcome
        done()
        future.set_exception(error)
    else:
        done()
        future.set_result(result)
