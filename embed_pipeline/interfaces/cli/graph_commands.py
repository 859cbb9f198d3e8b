"""Commands on the graph: what is embedded, what is missing, what is found."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from embed_pipeline.interfaces.cli import session
from embed_pipeline.interfaces.cli.output import AsJson, console, say, show, show_rows
from embed_pipeline.model.job import EntityUid
from embed_pipeline.worker import discover as discovering
from embed_pipeline.worker import force as forcing
from embed_pipeline.worker import search as searching
from embed_pipeline.worker import summarise as summarising

SECOND_FORMAT = "%Y-%m-%dT%H:%M:%SZ"


def coverage(as_json: AsJson = False) -> None:
    """How many entities have a good vector, what the others lack, and what mends it.

    Example: `embed-pipeline coverage`
    """
    with session.tools() as (tools, _):
        counted = tools.graph.coverage(model=tools.model)
        queue = tools.jobs.get_queue_status()
        model = tools.model
    facts = asdict(counted) | {
        "percent": counted.percent,
        "queued": queue.pending + queue.processing,
        "failed": queue.failed,
        "model": model,
    }
    if not as_json:
        facts["percent"] = (
            "no entities yet" if counted.percent is None else f"{counted.percent:.1f} %"
        )
        facts |= _remedies(counted.entities - counted.embedded, facts["queued"], queue.failed)
    show(facts, as_json=as_json, title="Coverage")


def discover(as_json: AsJson = False) -> None:
    """Find entities without a good vector and queue them.

    Example: `embed-pipeline discover`
    """
    with session.tools() as (tools, _):
        report = discovering.discover(tools)
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
    with session.tools() as (tools, _):
        report = forcing.force_embedding(
            tools, entity_name=name, key=None if key is None else EntityUid(key), limit=limit
        )
    say(report.message, asdict(report), as_json=as_json)


def search(
    query: Annotated[str, typer.Argument(help="What to look for, in your own words.")],
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="How many hits.")] = 5,
    entity_type: Annotated[str | None, typer.Option("--type", help="Only of this type.")] = None,
    as_json: AsJson = False,
) -> None:
    """Search by meaning over what is embedded.

    Example: `embed-pipeline search "keeps food cold without electricity"`
    """
    with session.tools() as (tools, _):
        result = searching.search(tools, query, limit=limit, entity_type=entity_type)
    hits = [
        {
            "score": round(hit.score, 4),
            "name": hit.entity.name,
            "type": hit.entity.entity_type,
            "key": hit.entity.uid,
        }
        for hit in result.hits
    ]
    if as_json:
        counts = {"searchable": result.searchable, "entities": result.entities}
        show({"hits": hits} | counts, as_json=True, title="Search")
        return
    rows = [hit | {"score": f"{hit['score']:.3f}"} for hit in hits]
    show_rows(rows, as_json=False, title=f"“{query}”", empty="Nothing found.")
    if result.searchable < result.entities:
        console.print(
            f"{result.searchable} of {result.entities} entities have a vector: "
            "see `embed-pipeline coverage`."
        )


def summary(
    since: Annotated[
        datetime | None, typer.Option(formats=[SECOND_FORMAT], help="Work done since (UTC).")
    ] = None,
    searches: Annotated[
        Path | None, typer.Option(help="A JSON list of {query, expected} to search for.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """One page: coverage, what was done, health, and some searches.

    Example: `embed-pipeline summary --searches examples/searches.json`
    """
    with session.tools() as (tools, _):
        page = summarising.summarise(tools, since=since and since.replace(tzinfo=UTC))
        queries = summarising.read_queries(searches) if searches else ()
        found = [(query, searching.search(tools, query, limit=3)) for query in queries]
    facts = page.facts() | {
        f"“{query}”": [f"{hit.entity.name} ({hit.score:.2f})" for hit in result.hits]
        for query, result in found
    }
    show(facts, as_json=as_json, title="Summary")


def _remedies(missing: int, queued: int, failed: int) -> dict[str, str]:
    """The next command, for each kind of gap."""
    remedies = {}
    if queued:
        remedies["to embed what is queued"] = "embed-pipeline run"
    if missing > queued:
        remedies["to queue what is missing"] = "embed-pipeline discover"
    if failed:
        remedies["to see what failed"] = "embed-pipeline failed"
    return remedies


def add_to(app: typer.Typer) -> None:
    for command in (coverage, discover, force, search, summary):
        app.command()(command)
