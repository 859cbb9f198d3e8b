"""Commands on entities that a person or a program names."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated

import typer

from embed_pipeline.domain.job import EntityUid
from embed_pipeline.interfaces.cli import session
from embed_pipeline.interfaces.cli.output import show
from embed_pipeline.interfaces.cli.parameters import AsJson, utf8
from embed_pipeline.usecases.entities import erase as erase_use_case
from embed_pipeline.usecases.entities import refresh as refresh_use_case

Names = Annotated[
    list[str],
    typer.Argument(
        help="Keys or exact names; - reads them from standard input, one a line.", parser=utf8
    ),
]


def refresh(names: Names, as_json: AsJson = False) -> None:
    """Queue those of the named entities whose text has changed: "I changed these".

    For programs that write to the graph by themselves. Exits with 1 if a name is unknown, or if
    the queue could not be reached: then discovery queues what has changed.

    Examples: `embed-pipeline refresh z1 "Zeer pot"`, `embed-pipeline refresh - < changed.txt`
    """
    with session.services() as (services, _):
        report = refresh_use_case.refresh(services, _all(names))
    show(asdict(report), as_json=as_json, title="Refresh")
    if report.unknown or not report.queue_reached:
        raise typer.Exit(1)


def erase(
    key: Annotated[str, typer.Argument(help="The entity's key.", metavar="KEY", parser=utf8)],
    delete: Annotated[
        bool, typer.Option("--delete", help="Remove the entity itself and its relationships too.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove what is kept of one entity: vectors, labels, jobs and their error texts.

    The entity stays, excluded: it is never embedded again, also if it is loaded again. Afterwards
    it looks for what is left, also by a search, and exits with 1 if there is anything.

    Examples: `embed-pipeline erase z1`, `embed-pipeline erase z1 --delete --yes`
    """
    if not yes:
        what = "and the entity itself " if delete else ""
        typer.confirm(f"Erase all vectors and jobs of {key} {what}forever?", abort=True, err=True)
    with session.services() as (services, _):
        report = erase_use_case.erase(services, EntityUid(key), delete=delete)
    show(asdict(report), as_json=as_json, title="Erased")
    if report.left:
        raise typer.Exit(1)


def _all(names: list[str]) -> Iterator[str]:
    """Lines of standard input are read while the others are worked on."""
    for name in names:
        if name != "-":
            yield name
            continue
        yield from (line for raw in sys.stdin if (line := utf8(raw.strip())))


COMMANDS = (refresh, erase)
