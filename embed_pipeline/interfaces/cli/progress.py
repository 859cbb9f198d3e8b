"""The progress bar of long commands, and their interruption by SIGTERM."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from embed_pipeline.interfaces.cli.output import console

OnProgress = Callable[[int, str], None]
"""Called with the number done so far and a few words to show beside it."""


@contextmanager
def progress(verb: str, *, total: int | None = None) -> Iterator[OnProgress]:
    """A live bar on a terminal, otherwise nothing."""
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
            shown.update(task, completed=completed, total=most, words=words)

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
