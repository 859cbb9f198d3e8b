"""Commands on the graph: what is embedded, what is missing, what is found."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from embed_pipeline.domain.diagnosis import Remedy
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.interfaces.cli import session
from embed_pipeline.interfaces.cli.output import MOMENT_FORMATS, AsJson, say, show, show_rows
from embed_pipeline.interfaces.cli.progress import progress
from embed_pipeline.interfaces.cli.remedies import command_for
from embed_pipeline.usecases.entities import discover as discovering
from embed_pipeline.usecases.entities import force as forcing
from embed_pipeline.usecases.insight import coverage as reporting
from embed_pipeline.usecases.insight import search as searching
from embed_pipeline.usecases.insight import summary as summarising
from embed_pipeline.usecases.insight.coverage import CoverageReport


def coverage(as_json: AsJson = False) -> None:
    """How many entities have a good vector, what the others lack, and what mends it.

    Counted, never estimated, so it reads the whole graph once.

    Example: `embed-pipeline coverage`
    """
    with session.services() as (services, _):
        report, model = reporting.read_coverage(services), services.model
    counted, remedies = report.coverage, _commands(report)
    counts = asdict(counted) | {"failed": report.queue.failed, "queued": report.queued}
    if as_json:
        facts = counts | {"percent": counted.percent, "model": model, "remedies": remedies}
        show(facts, as_json=True, title="Coverage")
        return
    share = "no entities yet" if counted.percent is None else f"{counted.percent:.1f} %"
    rows = [
        {"state": name.replace("_", " "), "count": count, "meaning": _MEANINGS[name]}
        | {"to mend it": remedies.get(name, "")}
        for name, count in counts.items()
    ]
    show_rows(rows, as_json=False, title=f"Coverage of {model}: {share}", empty="")


def discover(as_json: AsJson = False) -> None:
    """Find entities without a good vector and queue them.

    Example: `embed-pipeline discover`
    """
    with session.services() as (services, _), progress("Looking") as told:
        report = discovering.discover(
            services, on_page=lambda so_far: told(so_far.examined, f"{so_far.new_jobs:,} queued")
        )
    show(asdict(report), as_json=as_json, title="Discovery")


def force(
    name: Annotated[str | None, typer.Argument(help="The entity's exact name.")] = None,
    key: Annotated[str | None, typer.Option(help="The entity's key, where names repeat.")] = None,
    limit: Annotated[
        int, typer.Option(help="Without a name: queue at most so many that lack a vector.")
    ] = forcing.DEFAULT_LIMIT,
    as_json: AsJson = False,
) -> None:
    """Embed one entity again, or repair a number of entities without a vector.

    Examples: `embed-pipeline force "Zeer pot"`, `embed-pipeline force --limit 50`
    """
    with session.services() as (services, _):
        report = forcing.force_embedding(
            services, entity_name=name, key=None if key is None else EntityUid(key), limit=limit
        )
    say(report.message, asdict(report), as_json=as_json)


def summary(
    since: Annotated[
        datetime | None, typer.Option(formats=MOMENT_FORMATS, help="Work done since (UTC).")
    ] = None,
    searches: Annotated[
        Path | None, typer.Option(help="A JSON list of {query, expected} to search for.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """One page: coverage, what was done, health, and some searches.

    Example: `embed-pipeline summary --searches examples/searches.json`
    """
    with session.services() as (services, _):
        page = summarising.summarise(services, since=since and since.replace(tzinfo=UTC))
        queries = summarising.read_queries(searches) if searches else ()
        found = [(query, searching.search(services, query, limit=3)) for query in queries]
    facts = page.facts() | {
        f"“{query}”": [f"{hit.entity.name} ({hit.score:.2f})" for hit in result.hits]
        for query, result in found
    }
    show(facts, as_json=as_json, title="Summary")


_MEANINGS = {
    "entities": "valid entities of the graph",
    "embedded": "have a vector of their present text",
    "missing": "have no vector: no search finds them",
    "stale": "have the vector of an earlier text",
    "wrong_model": "have a vector of another model: no search uses it",
    "wrong_dimension": "have a vector of a wrong length: no search uses it",
    "failed": "jobs that failed and are parked",
    "queued": "jobs that wait or are being worked on",
}


def _commands(report: CoverageReport) -> dict[str, str]:
    """The next command for each line of the table."""
    remedies = report.remedies
    commands = {
        name: command_for(next(iter(remedies)))
        for name in ("missing", "stale", "wrong_model", "wrong_dimension")
        if getattr(report.coverage, name) and remedies
    }
    lines = {Remedy.RETRY_FAILED: "failed", Remedy.RUN: "queued", Remedy.RESUME: "queued"}
    return commands | {lines[remedy]: command_for(remedy) for remedy in remedies if remedy in lines}


def add_to(app: typer.Typer) -> None:
    for command in (coverage, discover, force, summary):
        app.command()(command)
