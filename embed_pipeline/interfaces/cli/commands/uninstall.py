"""The command that leaves: what was added to the graph is removed."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from embed_pipeline import wiring
from embed_pipeline.interfaces.cli import session
from embed_pipeline.interfaces.cli.output import show
from embed_pipeline.interfaces.cli.parameters import AsJson
from embed_pipeline.interfaces.cli.progress import progress
from embed_pipeline.stores.config import UninstallOptions


def uninstall(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be removed; change nothing.")
    ] = False,
    keep_vectors: Annotated[
        bool, typer.Option("--keep-vectors", help="Leave vectors, with their model and version.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove from the graph everything that was added: vectors, labels, indexes, the trigger.

    Your own nodes and properties stay as they are. Works in batches, and can be repeated if it
    was interrupted. Refuses while workers hold leases: stop Dagster first. A graph in SQLite is
    a file of our own: it only says which one to delete.

    Examples: `embed-pipeline uninstall --dry-run`, `embed-pipeline uninstall --yes`
    """
    settings = session.settings()
    if not (yes or dry_run):
        typer.confirm("Remove everything that was added to the graph?", abort=True, err=True)
    with progress("Removing", total=100) as update:

        def show_progress(what: str, done: int, total: int) -> None:
            update(round(100 * done / max(total, 1)), what)

        options = UninstallOptions(
            dry_run=dry_run, keep_vectors=keep_vectors, on_progress=show_progress
        )
        removed = wiring.uninstall(settings, options)
    title = "Would be removed" if dry_run else "Removed"
    show(asdict(removed) | {"dry_run": dry_run}, as_json=as_json, title=title)


COMMANDS = (uninstall,)
