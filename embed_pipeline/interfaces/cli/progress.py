"""The progress bar of long commands, and their interruption by SIGTERM."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import FrameType

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from embed_pipeline.interfaces.cli.output import console

OnProgress = Callable[[int, str], None]
"""Called with the number done so far and a few words to show beside it."""


def remaining(left: int, per_second: float) -> str:
    """How long it will take, to the nearest unit that matters."""
    seconds = left / per_second
    if seconds < 90:
        return f"about {max(round(seconds), 1)} s left"
    if seconds < 5_400:
        return f"about {round(seconds / 60)} min left"
    return f"about {timedelta(seconds=round(seconds)) / timedelta(hours=1):,.1f} h left"


class _Pace:
    """The rate since the first update, which may be of work that was done before."""

    def __init__(self, ceiling: float | None) -> None:
        self._ceiling = ceiling
        self._start: tuple[float, int] | None = None

    def words(self, completed: int, total: int | None) -> list[str]:
        now = time.monotonic()
        if self._start is None:
            self._start = (now, completed)
        elapsed, done = now - self._start[0], completed - self._start[1]
        if not total or elapsed < 1 or done <= 0:
            return []
        rate = min(done / elapsed, self._ceiling or done / elapsed)
        return [remaining(max(total - completed, 0), rate)]


@contextmanager
def progress(
    verb: str, *, total: int | None = None, ceiling: float | None = None
) -> Iterator[OnProgress]:
    """A live bar on a terminal, otherwise nothing; with a total it says how long it will take.

    `ceiling` is the most per second that a budget allows.
    """
    pace = _Pace(ceiling)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,}"),
        TextColumn("{task.fields[words]}", style="dim"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, transient=True, disable=not console.is_terminal) as shown:
        task = shown.add_task(verb, total=total, words="")

        def update(completed: int, words: str = "") -> None:
            # Work can arrive while the bar is shown, so `completed` can exceed the first total.
            most = None if total is None else max(total, completed)
            said = ", ".join(
                [words, *pace.words(completed, total)] if words else pace.words(completed, total)
            )
            shown.update(task, completed=completed, total=most, words=said)

        yield update


@contextmanager
def terminated_like_ctrl_c() -> Iterator[None]:
    """SIGTERM from a supervisor releases leases as Ctrl-C does."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
