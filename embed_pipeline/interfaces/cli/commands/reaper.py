"""Commands of the stuck-job reaper: `embed-pipeline reaper …`.

Each command imports the reaper when it runs, because psycopg is an extra.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from embed_pipeline import wiring
from embed_pipeline.errors import ConfigurationError
from embed_pipeline.interfaces.cli import session
from embed_pipeline.interfaces.cli.output import console, report, say, show, show_rows
from embed_pipeline.interfaces.cli.parameters import AsJson
from embed_pipeline.settings import ReaperSettings, Settings

if TYPE_CHECKING:
    from embed_pipeline.reaper import Reaped, Reaper, SweepResult

DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done; change nothing.")]

reaper_app = typer.Typer(
    name="reaper",
    help="Requeues stuck jobs of the SQL tables jobs and asr_jobs, or marks them failed.",
    no_args_is_help=True,
)


@reaper_app.command()
def init(
    dry_run: DryRun = False,
    create_tables: Annotated[
        bool,
        typer.Option("--create-tables", help="Also create jobs and asr_jobs if missing."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Add the columns, indexes and events table that the reaper needs. Can be run again.

    Example: `embed-pipeline reaper init --dry-run`
    """
    _, own = _settings()
    from embed_pipeline.reaper import database_of, migrate, plan

    with closing(database_of(own)) as database:
        act = plan if dry_run else migrate
        steps = act(database, create_tables=create_tables)
    statements = [step.text for step in steps]
    if as_json:
        say("", {"statements": statements, "done": not dry_run}, as_json=True)
        return
    for statement in statements:
        console.print(f"{statement};", highlight=False, soft_wrap=True)
    ended = "to do" if dry_run else "done"
    console.print(f"-- {len(statements)} statements {ended}." if steps else "Nothing to do.")


@reaper_app.command()
def run(
    once: Annotated[bool, typer.Option("--once", help="One sweep; the default.")] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Sweep every REAPER_INTERVAL_SEC until stopped.")
    ] = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Requeue jobs whose lease has expired, or mark them failed if no attempt is left.

    Exits with 1 if a table could not be swept. With --watch, errors are logged, SIGTERM and
    Ctrl-C end it after the current batch, and --json prints a line per sweep.

    Example: `embed-pipeline reaper run --watch`
    """
    if watch and (once or dry_run):
        raise typer.BadParameter("--watch cannot be combined with --once or --dry-run")
    settings, own = _settings()
    with _opened(settings, own) as reaper:
        if watch:
            _watch(reaper, own, as_json=as_json)
            return
        result = reaper.rehearse() if dry_run else reaper.sweep()
    _show(result, as_json=as_json)
    if result.problems:
        raise typer.Exit(1)


def _settings() -> tuple[Settings, ReaperSettings]:
    settings = session.settings()
    if settings.reaper is None:
        raise ConfigurationError(
            ["REAPER_DATABASE_URL must be set to the database of the SQL jobs."]
        )
    return settings, settings.reaper


@contextmanager
def _opened(settings: Settings, own: ReaperSettings) -> Iterator[Reaper]:
    from embed_pipeline.reaper import reaper_of

    with closing(reaper_of(own, count=partial(wiring.add_to_counters, settings))) as reaper:
        yield reaper


def _watch(reaper: Reaper, own: ReaperSettings, *, as_json: bool) -> None:
    from embed_pipeline.reaper import stopped_by_signals, watch

    def on_sweep(result: SweepResult) -> None:
        if as_json or result.reaped or result.problems:
            report(_sentence(result), _facts(result), as_json=as_json)

    with stopped_by_signals() as stop:
        sweeps = watch(reaper, interval=own.interval, stop=stop, on_sweep=on_sweep)
    if not as_json:
        console.print(f"Stopped after {sweeps} sweeps.")


def _show(result: SweepResult, *, as_json: bool) -> None:
    if as_json:
        facts = _facts(result) | {"jobs": [_row(reaped) for reaped in result.reaped]}
        show(facts, as_json=True, title="")
        return
    show_rows(
        [_row(reaped) for reaped in result.reaped],
        as_json=False,
        title="Would be reaped" if result.dry_run else "Reaped",
        empty="No job has an expired lease.",
    )
    console.print(_sentence(result), highlight=False, soft_wrap=True)


def _sentence(result: SweepResult) -> str:
    verbs = ("Would requeue", "fail") if result.dry_run else ("Requeued", "failed")
    parts = [f"{verbs[0]} {result.requeues} jobs and {verbs[1]} {result.failures}"]
    if result.reaped:
        parts.append(f"the oldest lease ended {result.lag.total_seconds():.0f} s ago")
    if result.left_alone:
        parts.append(f"{result.left_alone} rows have neither lease nor heartbeat and are skipped")
    if result.refused:
        parts.append(f"{result.refused} rows could not be changed")
    return "; ".join([*parts, *result.problems]).rstrip(".") + "."


def _facts(result: SweepResult) -> dict[str, Any]:
    return {**result.metrics, "dry_run": result.dry_run, "problems": list(result.problems)}


def _row(reaped: Reaped) -> dict[str, Any]:
    return {
        "table": reaped.table,
        "job": reaped.job.job_id,
        "stage": reaped.job.stage,
        "attempts": f"{reaped.attempts} of {reaped.max_attempts}",
        "worker": reaped.job.locked_by,
        "overdue_sec": round(reaped.overdue.total_seconds(), 1),
        "verdict": "fail" if reaped.was_failed else "requeue",
    }
