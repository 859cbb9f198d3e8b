"""Commands on single jobs: list failed ones, retry them, cancel pending ones."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated

import typer

from embed_pipeline.errors import ErrorCategory, RequestError
from embed_pipeline.interfaces.cli import session
from embed_pipeline.interfaces.cli.output import say, show_rows
from embed_pipeline.interfaces.cli.parameters import AsJson, Key, Name
from embed_pipeline.interfaces.cli.progress import progress
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.usecases.entities.named import find_entity
from embed_pipeline.usecases.queue import control, failures

Category = Annotated[
    ErrorCategory | None, typer.Option(help="Only failures of this category.", case_sensitive=False)
]


def failed(
    category: Category = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Show at most this many.")] = 20,
    stack: Annotated[bool, typer.Option("--stack", help="With the stack of each.")] = False,
    by_category: Annotated[
        bool, typer.Option("--by-category", help="Count them all by category and error instead.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List failed jobs, the latest first, with their errors.

    Examples: `embed-pipeline failed --by-category`, `embed-pipeline failed --limit 1 --stack`
    """
    with session.job_store() as (jobs, _):
        if by_category:
            groups = failures.group_failures(jobs.history, category=category)
            rows = [asdict(group) for group in groups]
        else:
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
                for job in jobs.failed_jobs(category=category, limit=limit)
            ]
    show_rows(rows, as_json=as_json, title="Failed jobs", empty="No job has failed.")


def retry_failed(
    category: Category = None,
    limit: Annotated[int, typer.Option(min=1, help="Retry at most this many.")] = 10_000,
    as_json: AsJson = False,
) -> None:
    """Return failed jobs to pending, with all their attempts.

    Example: `embed-pipeline retry-failed --category TRANSIENT`
    """
    with session.job_store() as (jobs, _):
        retried = control.retry_failed(jobs, category=category, limit=limit)
    say(f"{len(retried)} failed jobs are pending again.", {"retried": retried}, as_json=as_json)


def cancel(
    name: Name = None,
    key: Key = None,
    everything: Annotated[bool, typer.Option("--all", help="All pending jobs.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="With --all: at most this many.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="With --all: do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete the pending jobs of one entity, or all pending jobs. Leased jobs are not touched.

    The next discovery queues the entities again that still have no vector. To stop work for a
    while, use `pause` instead.

    Examples: `embed-pipeline cancel "Zeer pot"`, `embed-pipeline cancel --all --yes`
    """
    if everything == (name is not None or key is not None):
        raise typer.BadParameter("give a name, or a --key, or --all")
    if everything:
        with session.job_store() as (jobs, _):
            count = _cancel_all(jobs, limit=limit, yes=yes)
    else:
        with session.services() as (services, _):
            # A key needs no entity: the jobs of a deleted entity can be cancelled too.
            uid = key if key is not None else find_entity(services.graph, name=name, key=None).uid
            count = len(control.cancel_entity(services.jobs, uid))
    say(f"Cancelled {count:,} pending jobs.", {"cancelled": count}, as_json=as_json)


def _cancel_all(jobs: JobStore, *, limit: int | None, yes: bool) -> int:
    pending = jobs.get_queue_status().pending
    wanted = pending if limit is None else min(pending, limit)
    if wanted and not yes:
        if not sys.stdin.isatty():
            raise RequestError(f"This would delete {wanted:,} jobs: confirm it with --yes.")
        typer.confirm(f"Delete {wanted:,} of {pending:,} pending jobs?", abort=True, err=True)
    with progress("Cancelling", total=wanted) as update:
        return control.cancel_pending(jobs, limit=limit, on_page=lambda done: update(done, ""))


COMMANDS = (failed, cancel, retry_failed)
