"""The threads of the pool: reused for tasks of their kind, and gone after the shutdown."""

from __future__ import annotations

import threading
from concurrent.futures import wait
from functools import partial

from embed_pipeline.worker.pool import TaskKind, TaskPool


class Tasks:
    """Starts tasks that return their thread, and keeps the threads of those that finished."""

    def __init__(self) -> None:
        self.pool = TaskPool()
        self.threads: list[threading.Thread] = []

    def start(self, kind: TaskKind, *, until: threading.Event | None = None) -> None:
        def work() -> threading.Thread:
            if until is not None:
                assert until.wait(10)
            return threading.current_thread()

        self.pool.start(kind, work)

    def finish(self) -> None:
        while not self.pool.is_idle:
            self.threads += [task.outcome.result() for task in self.pool.finished(timeout=10)]


def test_tasks_of_a_kind_that_follow_each_other_share_a_thread() -> None:
    tasks = Tasks()

    for _ in range(20):
        tasks.start(TaskKind.REQUEST)
        tasks.finish()

    assert len(set(tasks.threads)) == 1
    tasks.pool.shutdown()


def test_tasks_at_once_and_of_other_kinds_have_threads_of_their_own() -> None:
    tasks, go = Tasks(), threading.Event()

    for kind in (TaskKind.REQUEST, TaskKind.REQUEST, TaskKind.WRITE):
        tasks.start(kind, until=go)
    go.set()
    tasks.finish()

    assert len(set(tasks.threads)) == 3
    tasks.pool.shutdown()


def test_finished_tasks_come_in_the_order_of_their_start_with_their_subject() -> None:
    pool = TaskPool()
    last_first = [threading.Event() for _ in range(6)]
    last_first[5].set()

    def finish_after_the_next(number: int) -> None:
        last_first[number + 1].wait(10)
        last_first[number].set()

    for number in range(5):
        pool.start(TaskKind.WRITE, partial(finish_after_the_next, number), subject=number)
    wait(pool._tasks, timeout=10)

    handled = [task.subject for task in pool.finished(timeout=10)]

    assert handled == [0, 1, 2, 3, 4]
    assert pool.is_idle
    pool.shutdown()


def test_task_that_is_not_handled_is_yielded_again() -> None:
    tasks = Tasks()
    for _ in range(3):
        tasks.start(TaskKind.WRITE)

    next(tasks.pool.finished(timeout=10))
    tasks.finish()

    assert len(tasks.threads) == 2
    tasks.pool.shutdown()


def test_shutdown_ends_idle_threads_at_once_and_busy_ones_after_their_task() -> None:
    tasks, go = Tasks(), threading.Event()
    tasks.start(TaskKind.WRITE)
    tasks.finish()
    tasks.start(TaskKind.REQUEST, until=go)

    tasks.pool.shutdown()
    go.set()
    tasks.finish()

    for thread in tasks.threads:
        thread.join(10)
        assert not thread.is_alive()
