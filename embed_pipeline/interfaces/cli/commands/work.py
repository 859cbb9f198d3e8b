"""Commands that process many entities or jobs: load, run, export."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from embed_pipeline.domain.job import JobStatus
from embed_pipeline.interfaces.cli import session
from embed_pipeline.interfaces.cli.output import say, show
from embed_pipeline.interfaces.cli.parameters import TIME_FORMATS, AsJson
from embed_pipeline.interfaces.cli.progress import OnProgress, progress, terminated_like_ctrl_c
from embed_pipeline.interfaces.cli.session import worker_id
from embed_pipeline.usecases.files.export import export_jobs
from embed_pipeline.usecases.files.load import load_file
from embed_pipeline.usecases.insight.forecast import budget_rate, read_forecast
from embed_pipeline.worker.loop import run_until_empty
from embed_pipeline.worker.report import RunReport
from embed_pipeline.worker.stop import Deadline, StopReason


def load(
    file: Annotated[Path, typer.Argument(help="A file that ends with .csv, .jsonl or .parquet.")],
    as_json: AsJson = False,
) -> None:
    """Create or update the entities of a file and queue what changed.

    Columns are the mapped properties (name, entityType, observations); in CSV a cell that is a
    JSON list becomes a list. Bad rows are reported with their line and the command exits with 1;
    all other rows are stored. A cell of more than 10 MB or a row of more than 50 MB is a bad row.
    Loading the same file again changes nothing.

    Examples: `embed-pipeline load examples/sample_graph.csv`, `embed-pipeline load graph.jsonl`
    """
    with session.services() as (services, _), progress("Loading") as update:
        report = load_file(
            services,
            file,
            on_page=lambda so_far: update(so_far.rows, f"rows, {so_far.refused:,} refused"),
        )
    show(
        {
            "rows": report.rows,
            "created": report.created,
            "changed": report.changed,
            "unchanged": report.unchanged,
            "new_jobs": report.new_jobs,
            "refused": report.refused,
            "bad_rows": report.bad_rows(),
        }
        | ({} if report.queued else {"queue": "unreachable; discovery will queue these entities"}),
        as_json=as_json,
        title=f"Loaded {file.name}",
    )
    if report.refused:
        raise typer.Exit(1)


def run(as_json: AsJson = False) -> None:
    """Embed the queued jobs in this process, without Dagster. Waits when the budget is used up.

    Recovers jobs with an expired lease first. Ctrl-C releases the leased jobs. Exits with 1 if a
    job failed, or if the queue is paused or halted.

    Example: `embed-pipeline run`
    """
    with session.services() as (services, settings), terminated_like_ctrl_c():
        queued = services.jobs.get_queue_status()
        total, ceiling = queued.pending + queued.processing, budget_rate(services)
        with progress("Embedding", total=total, ceiling=ceiling) as update:
            tally = run_until_empty(
                services,
                owner=worker_id(),
                recovery_interval=settings.queue.recovery_interval,
                deadline=Deadline(services.clock, limit=None),
                on_batch=_LiveView(update),
            )
        switch = services.jobs.switch.read()
        forecast = read_forecast(services, services.jobs.get_queue_status())
    stopped = {} if switch.is_running else {"queue": f"{switch.state}: {switch.reason}"}
    facts = _summary(tally) | {"left": forecast.left, "done": forecast.is_done} | stopped
    show(facts, as_json=as_json, title="Run")
    if tally.failed or tally.stop_reason in (StopReason.REFUSED, StopReason.HALTED):
        raise typer.Exit(1)


def export(
    file: Annotated[Path, typer.Argument(help="The file to write, ending with .csv or .parquet.")],
    status: Annotated[JobStatus | None, typer.Option(help="Only jobs of this status.")] = None,
    since: Annotated[
        datetime | None,
        typer.Option(formats=TIME_FORMATS, help="Only jobs that ended since then (UTC)."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an existing file.")
    ] = False,
    spreadsheet: Annotated[
        bool,
        typer.Option("--spreadsheet", help="CSV for Excel and the like: formulas are escaped."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write jobs to a CSV or Parquet file, with errors and stacks.

    Texts are written exactly as they are, also those that a spreadsheet would run as a formula
    (`=1+1`). With `--spreadsheet` a cell that starts with =, +, -, @, a tab or a line break gets an
    apostrophe in front.

    Example: `embed-pipeline export failures.parquet --status failed`
    """
    with (
        session.job_store() as (jobs, _),
        terminated_like_ctrl_c(),
        progress("Exporting") as update,
    ):
        count = export_jobs(
            jobs.history,
            file,
            status=status,
            since=since and since.replace(tzinfo=UTC),
            overwrite=overwrite,
            spreadsheet=spreadsheet,
            on_page=lambda done: update(done, "jobs"),
        )
    say(f"Wrote {count:,} jobs to {file}.", {"jobs": count, "file": str(file)}, as_json=as_json)


class _LiveView:
    """Sums the rounds of a run, each of which counts from 0."""

    def __init__(self, update: OnProgress) -> None:
        self._update = update
        self._before, self._now = RunReport(), RunReport()

    def __call__(self, so_far: RunReport) -> None:
        if so_far.leased < self._now.leased:
            self._before = self._before.plus(self._now)
        self._now = so_far.plus(RunReport())
        total = self._before.plus(self._now)
        rate = total.per_second
        words = [f"{rate:,.0f} per second"] if rate else []
        words += [f"{total.failed:,} failed"] if total.failed else []
        words += [f"{total.requests:,} requests"] if total.requests else []
        self._update(total.completed + total.failed, ", ".join(words))


def _summary(tally: RunReport) -> dict[str, object]:
    facts = {name: value for name, value in tally.facts().items() if value}
    failures = [f"{failed.entity_name}: {failed.failure.message}" for failed in tally.failures]
    return (
        {"completed": tally.completed}
        | facts
        | {
            "failures": failures[:20],
            "ended_because": tally.stop_reason.value,
        }
    )


COMMANDS = (load, run, export)
