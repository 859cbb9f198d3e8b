"""Commands that find entities by meaning, and explain why one is not found."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from embed_pipeline.domain.diagnosis import Diagnosis
from embed_pipeline.domain.embedding import MOST_HITS
from embed_pipeline.interfaces.cli import session
from embed_pipeline.interfaces.cli.output import console, show, show_rows
from embed_pipeline.interfaces.cli.parameters import AsJson, Key, Name, Query
from embed_pipeline.interfaces.cli.remedies import command_for
from embed_pipeline.usecases.insight import search as search_use_case
from embed_pipeline.usecases.insight import why as why_use_case


def search(
    query: Query,
    limit: Annotated[int, typer.Option(min=1, max=MOST_HITS, help="How many hits.")] = 5,
    entity_type: Annotated[str | None, typer.Option("--type", help="Only of this type.")] = None,
    as_json: AsJson = False,
) -> None:
    """Search the embedded entities by meaning.

    The score is the cosine similarity of query and entity, from -1 to 1; 1 is the same meaning.
    Entities without a vector cannot be found; the answer says how many there are.

    Example: `embed-pipeline search "keeps food cold without electricity" --type Invention`
    """
    with session.services() as (services, _):
        result = search_use_case.search(services, query, limit=limit, entity_type=entity_type)
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


def why(name: Name = None, key: Key = None, as_json: AsJson = False) -> None:
    """Explain why an entity cannot be found by meaning, or when it will be, and what to do.

    Exits with 1 unless every entity of that name can be found.

    Example: `embed-pipeline why "Zeer pot"`
    """
    if name is None and key is None:
        raise typer.BadParameter("give a name or a --key")
    with session.services() as (services, _):
        found = why_use_case.why(services, name=name, key=key)
    if as_json:
        show({"findings": [_facts(diagnosis) for diagnosis in found]}, as_json=True, title="Why")
    else:
        for diagnosis in found:
            console.print(diagnosis.message, highlight=False, soft_wrap=True)
            if command := _command(diagnosis):
                console.print(f"  → {command}", style="bold", highlight=False)
    if not all(diagnosis.findable for diagnosis in found):
        raise typer.Exit(1)


def _command(diagnosis: Diagnosis) -> str | None:
    return command_for(diagnosis.remedy, diagnosis.entity) if diagnosis.remedy else None


def _facts(diagnosis: Diagnosis) -> dict[str, Any]:
    entity = diagnosis.entity
    return {
        "reason": diagnosis.reason,
        "message": diagnosis.message,
        "remedy": _command(diagnosis),
        "findable": diagnosis.findable,
        "flaw": diagnosis.defect,
        "due_at": diagnosis.due_at,
        "key": entity.uid if entity else None,
        "name": entity.name if entity else None,
        "type": entity.entity_type if entity else None,
    }


COMMANDS = (search, why)
