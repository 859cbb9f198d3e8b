"""Commands on single jobs: those that failed, and those that nobody wants any more."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated

import typer

from embed_pipeline.domain.job import EntityUid
from embed_pipeline.errors import ErrorCategory, RequestError
from embed_pipeline.interfaces.cli import session
from embed_pipeline.interfaces.cli.output import AsJson, say, show_rows
from embed_pipeline.interfaces.cli.progress import progress
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.usecases.entities.named import find_entity
from embed_pipeline.usecases.queue import control as controlling
from embed_pipeline.usecases.queue import failures as failing

Category = Annotated[
    ErrorCategory | None, typer.Option(help="Only failures of this category.", case_sensitive=False)
]


def failed(
    category: Category = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Show at most so many.")] = 20,
    stack: Annotated[bool, typer.Option("--stack", help="With the stack of each.")] = False,
    by_category: Annotated[
        bool, typer.Option("--by-category", help="Count them all by category and error instead.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Failed jobs, the latest first, and why they failed.

    Examples: `embed-pipeline failed --by-category`, `embed-pipeline failed --limit 1 --stack`
    """
    if by_category:
        _show_categories(category, as_json=as_json)
        return
    with session.job_store() as (jobs, _):
        found = jobs.failed_jobs(category=category, limit=limit)
    rows = [
        {
            "entity": job.entity_uid,
            "category": job.error_category,
            "error": job.error,
            "attempts": job.attempts,
            "ended": job.processed_at,
            "job": job.id,
        }
        | ({"stack": job.error_stack} if stack else {})
        for job in found
    ]
    show_rows(rows, as_json=as_json, title="Failed jobs", empty="No job has failed.")


def retry_failed(
    category: Category = None,
    limit: Annotated[int, typer.Option(min=1, help="Retry at most so many.")] = 10_000,
    as_json: AsJson = False,
) -> None:
    """Give failed jobs a fresh start: attempts back to 0.

    Example: `embed-pipeline retry-failed --category TRANSIENT`
    """
    with session.job_store() as (jobs, _):
        retried = controlling.retry_failed(jobs, category=category, limit=limit)
    say(f"{len(retried)} failed jobs are pending again.", {"retried": retried}, as_json=as_json)


def cancel(
    name: Annotated[str | None, typer.Argument(help="The entity's exact name.")] = None,
    key: Annotated[str | None, typer.Option(help="The entity's key.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All pending jobs.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="With --all: at most so many.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="With --all: do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete pending jobs of one entity, or all. Jobs that a worker holds are not touched.

    Nothing remembers them: the next discovery finds entities without a vector and queues them
    anew. To stop work for a while, `pause` instead.

    Examples: `embed-pipeline cancel "Zeer pot"`, `embed-pipeline cancel --all --yes`
    """
    if everything == (name is not None or key is not None):
        raise typer.BadParameter("name an entity, or give its --key, or say --all")
    if everything:
        with session.job_store() as (jobs, _):
            count = _cancel_all(jobs, limit=limit, yes=yes)
    else:
        with session.services() as (services, _):
            # A key needs no entity: jobs of one that was deleted can be cancelled too.
            uid = (
                EntityUid(key)
                if key is not None
                else find_entity(services.graph, name=name, key=None).uid
            )
            count = len(controlling.cancel_entity(services.jobs, uid))
    say(f"Cancelled {count:,} pending jobs.", {"cancelled": count}, as_json=as_json)


def _cancel_all(jobs: JobStore, *, limit: int | None, yes: bool) -> int:
    pending = jobs.get_queue_status().pending
    wanted = pending if limit is None else min(pending, limit)
    if wanted and not yes:
        if not sys.stdin.isatty():
            raise RequestError(f"{wanted:,} jobs would be deleted: say --yes to do it.")
        typer.confirm(f"Delete {wanted:,} of {pending:,} pending jobs?", abort=True, err=True)
    with progress("Cancelling", total=wanted) as told:
        return controlling.cancel_pending(jobs, limit=limit, on_page=lambda done: told(done, ""))


def _show_categories(category: ErrorCategory | None, *, as_json: bool) -> None:
    with session.job_store() as (jobs, _):
        groups = failing.group_failures(jobs.history, category=category)
    rows = [asdict(group) for group in groups]
    show_rows(rows, as_json=as_json, title="Failed jobs", empty="No job has failed.")


def add_to(app: typer.Typer) -> None:
    for command in (failed, cancel):
        app.command()(command)
    app.command("retry-failed")(retry_failed)
