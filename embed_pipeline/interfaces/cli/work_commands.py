"""Commands that work through many entities: load and run."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from embed_pipeline.interfaces.cli import session
from embed_pipeline.interfaces.cli.output import AsJson, console, show
from embed_pipeline.worker import load as loading
from embed_pipeline.worker.loop import run_until_empty
from embed_pipeline.worker.pace import Pace
from embed_pipeline.worker.report import Ending, Tally


def load(
    file: Annotated[Path, typer.Argument(help="A CSV file with a header.")],
    as_json: AsJson = False,
) -> None:
    """Create or update the entities of a CSV file and queue what changed.

    Columns are the mapped properties (name, entityType, observations); a cell that is a JSON
    list becomes a list. Bad rows are told with their line, all others are kept.

    Example: `embed-pipeline load examples/sample_graph.csv`
    """
    with session.tools() as (tools, _), _progress("Loading") as told:
        report = loading.load_csv(tools, file, on_page=lambda so_far: told(so_far.rows))
    show(
        {
            "rows": report.rows,
            "created": report.created,
            "changed": report.changed,
            "unchanged": report.unchanged,
            "new_jobs": report.new_jobs,
            "refused": report.refused,
            "bad_rows": _bad_rows(report),
        }
        | ({} if report.queued else {"queue": "unreachable; discovery will queue these entities"}),
        as_json=as_json,
        title=f"Loaded {file.name}",
    )
    if report.refused:
        raise typer.Exit(1)


def run(as_json: AsJson = False) -> None:
    """Embed what is queued, here and now, without Dagster; waits for the budget.

    Ctrl-C gives back what is held.

    Example: `embed-pipeline run`
    """
    with (
        session.tools() as (tools, settings),
        _terminated_like_ctrl_c(),
        _progress("Embedding") as told,
    ):
        tally = run_until_empty(
            tools,
            owner=_worker_id(),
            recovery_interval=settings.queue.recovery_interval,
            pace=Pace(tools.clock, limit=None),
            on_batch=lambda so_far: told(so_far.completed),
        )
        switch = tools.jobs.switch.read()
    stopped = {} if switch.is_running else {"queue": f"{switch.state}: {switch.reason}"}
    show(_summary(tally) | stopped, as_json=as_json, title="Run")
    if tally.failed or tally.ending in (Ending.REFUSED, Ending.HALTED):
        raise typer.Exit(1)


def _bad_rows(report: loading.LoadReport) -> list[str]:
    told = [f"line {row.line}: {row.reason}" for row in report.bad]
    more = report.refused - len(told)
    return [*told, f"and {more:,} more, each with a line in the log"] if more else told


def _summary(tally: Tally) -> dict[str, object]:
    facts = {name: value for name, value in tally.facts().items() if value}
    failures = [f"{failed.entity_name}: {failed.failure.message}" for failed in tally.failures]
    return (
        {"completed": tally.completed}
        | facts
        | {
            "failures": failures[:20],
            "ended_because": tally.ending.value,
        }
    )


def _worker_id() -> str:
    return f"cli-{socket.gethostname()}-{os.getpid()}"


@contextmanager
def _progress(verb: str) -> Iterator[Callable[[int], None]]:
    """A live count on a terminal; nothing where nobody watches."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(verb, total=None)
        yield lambda completed: progress.update(task, completed=completed)


@contextmanager
def _terminated_like_ctrl_c() -> Iterator[None]:
    """A supervisor's SIGTERM gives leases back just as Ctrl-C does."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def add_to(app: typer.Typer) -> None:
    for command in (load, run):
        app.command()(command)
