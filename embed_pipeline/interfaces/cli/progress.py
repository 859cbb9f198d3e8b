"""What a person sees while long work goes on, and how it is interrupted."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from embed_pipeline.interfaces.cli.output import console

Told = Callable[[int, str], None]
"""Called with how much is done, and with a few words about it."""


@contextmanager
def progress(verb: str, *, total: int | None = None) -> Iterator[Told]:
    """A live bar on a terminal; nothing where nobody watches."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,}"),
        TextColumn("{task.fields[words]}", style="dim"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, transient=True, disable=not console.is_terminal) as shown:
        task = shown.add_task(verb, total=total, words="")

        def told(completed: int, words: str = "") -> None:
            # Work may come in while it is done: the bar never says more than all.
            most = None if total is None else max(total, completed)
            shown.update(task, completed=completed, total=most, words=words)

        yield told


@contextmanager
def terminated_like_ctrl_c() -> Iterator[None]:
    """A supervisor's SIGTERM gives leases back just as Ctrl-C does."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
