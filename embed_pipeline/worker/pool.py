"""Threads for the blocking work of a run; its results are handled by the run's own thread."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextvars import copy_context
from enum import Enum, auto
from functools import partial
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class TaskKind(Enum):
    LEASE = auto()
    REQUEST = auto()
    WRITE = auto()


class FinishedTask(NamedTuple):
    kind: TaskKind
    subject: Any
    """What the task was about, as given to `TaskPool.start`."""
    outcome: Future[Any]


class TaskPool:
    """Daemon threads: a provider that never answers does not keep the process alive.

    Only the thread that owns the pool starts tasks and handles their results, so its decisions
    need no lock, and an interrupt of that thread never cuts a paid request short.
    """

    def __init__(self) -> None:
        self._tasks: dict[Future[Any], tuple[TaskKind, Any]] = {}
        self._idle: dict[TaskKind, deque[_PoolThread]] = {kind: deque() for kind in TaskKind}
        self._shut_down = threading.Event()

    @property
    def is_idle(self) -> bool:
        return not self._tasks

    def busy(self, kind: TaskKind) -> int:
        """How many tasks of this kind are not handled yet."""
        return sum(each is kind for each, _ in self._tasks.values())

    def start(self, kind: TaskKind, work: Callable[[], object], *, subject: object = None) -> None:
        """The task is registered before it begins, so an interrupt in here does not lose it."""
        future: Future[Any] = Future()
        self._tasks[future] = (kind, subject)
        idle = self._idle[kind]
        thread = idle.pop() if idle else _PoolThread(kind, idle, self._shut_down)
        thread.take(future, partial(copy_context().run, work))  # a span's parent is in the context

    def finished(self, *, timeout: float) -> Iterator[FinishedTask]:
        """Wait for the first task to finish, then yield all that have; none if the time is up.

        A caller that fails at one of them gets the others from the next call.
        """
        finished, _ = wait(self._tasks, timeout=timeout, return_when=FIRST_COMPLETED)
        # In the order in which they were started, as if they had run one after the other.
        for future in [future for future in self._tasks if future in finished]:
            kind, subject = self._tasks.pop(future)
            yield FinishedTask(kind, subject, future)

    def shutdown(self) -> None:
        """Start nothing more. Idle threads end now, busy ones after their task."""
        self._shut_down.set()
        for idle in self._idle.values():
            while idle:
                idle.pop().end()

    def abandon(self, kind: TaskKind, *, late: Callable[[Future[Any]], None]) -> None:
        """Wait no longer for these tasks; `late` handles each result in the task's own thread."""
        for future, (each, _) in self._tasks.items():
            if each is kind:
                future.add_done_callback(late)


class _PoolThread:
    """A thread for tasks of one kind.

    The same thread for the same kind: the memory that it allocated for a large answer is used
    again for the next one, instead of being kept by ever more threads.
    """

    def __init__(
        self, kind: TaskKind, idle: deque[_PoolThread], shut_down: threading.Event
    ) -> None:
        self._idle, self._shut_down = idle, shut_down
        self._inbox: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        name = f"embed-{kind.name.lower()}"
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def take(self, future: Future[T], work: Callable[[], T]) -> None:
        self._inbox.put(lambda: self._perform(future, work))

    def end(self) -> None:
        self._inbox.put(None)

    def _work(self) -> None:
        while (task := self._inbox.get()) is not None:
            task()
            del task  # and everything that it holds, before the wait for the next one

    def _perform(self, future: Future[T], work: Callable[[], T]) -> None:
        """Idle before the result is known, so that the handler of the result can use it again."""
        try:
            result = work()
        except BaseException as error:  # passed on to the handler of the result
            self._become_idle()
            future.set_exception(error)
        else:
            self._become_idle()
            future.set_result(result)

    def _become_idle(self) -> None:
        self._idle.append(self)
        if self._shut_down.is_set():  # `shutdown` may have gone through the idle threads already
            self.end()
