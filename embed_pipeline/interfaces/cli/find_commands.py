"""Commands that find: by meaning, and why something is not found."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from embed_pipeline.domain.diagnosis import Diagnosis
from embed_pipeline.domain.embedding import MOST_HITS
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.interfaces.cli import session
from embed_pipeline.interfaces.cli.output import AsJson, console, show, show_rows
from embed_pipeline.interfaces.cli.remedies import command_for
from embed_pipeline.usecases.insight import search as searching
from embed_pipeline.usecases.insight import why as asking


def search(
    query: Annotated[str, typer.Argument(help="What to look for, in your own words.")],
    limit: Annotated[int, typer.Option(min=1, max=MOST_HITS, help="How many hits.")] = 5,
    entity_type: Annotated[str | None, typer.Option("--type", help="Only of this type.")] = None,
    as_json: AsJson = False,
) -> None:
    """Search by meaning over what is embedded.

    Entities without a vector cannot be found; the answer says how many there are.

    Example: `embed-pipeline search "keeps food cold without electricity" --type Invention`
    """
    with session.services() as (services, _):
        result = searching.search(services, query, limit=limit, entity_type=entity_type)
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


def why(
    name: Annotated[str | None, typer.Argument(help="The entity's exact name.")] = None,
    key: Annotated[str | None, typer.Option(help="The entity's key, where names repeat.")] = None,
    as_json: AsJson = False,
) -> None:
    """Why an entity cannot be found by meaning, or when it will be, and what mends it.

    Exits with 1 unless everything of that name can be found.

    Example: `embed-pipeline why "Zeer pot"`
    """
    if name is None and key is None:
        raise typer.BadParameter("name an entity, or give its --key")
    with session.services() as (services, _):
        findings = asking.why(services, name=name, key=None if key is None else EntityUid(key))
    if as_json:
        show({"findings": [_facts(finding) for finding in findings]}, as_json=True, title="Why")
    else:
        for finding in findings:
            console.print(finding.message, highlight=False, soft_wrap=True)
            if command := _command(finding):
                console.print(f"  → {command}", style="bold", highlight=False)
    if not all(finding.findable for finding in findings):
        raise typer.Exit(1)


def _command(finding: Diagnosis) -> str | None:
    return command_for(finding.remedy, finding.entity) if finding.remedy else None


def _facts(finding: Diagnosis) -> dict[str, Any]:
    entity = finding.entity
    return {
        "reason": finding.reason,
        "message": finding.message,
        "remedy": _command(finding),
        "findable": finding.findable,
        "flaw": finding.defect,
        "due_at": finding.due_at,
        "key": entity.uid if entity else None,
        "name": entity.name if entity else None,
        "type": entity.entity_type if entity else None,
    }


def add_to(app: typer.Typer) -> None:
    for command in (search, why):
        app.command()(command)
