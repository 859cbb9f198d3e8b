"""Commands that find entities by meaning, explain why one is not found, and show its text."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from embed_pipeline.domain.diagnosis import Diagnosis
from embed_pipeline.domain.embedding import MOST_HITS, Hit
from embed_pipeline.domain.entity import Entity
from embed_pipeline.interfaces.cli import session
from embed_pipeline.interfaces.cli.output import console, say, show, show_rows
from embed_pipeline.interfaces.cli.parameters import AsJson, Key, Name, Query
from embed_pipeline.interfaces.cli.remedies import command_for
from embed_pipeline.usecases.insight import search as search_use_case
from embed_pipeline.usecases.insight import text as text_use_case
from embed_pipeline.usecases.insight import why as why_use_case
from embed_pipeline.usecases.insight.text import EntityText, excerpt

LONGEST_LINE = 60
"""Characters of a hit's text in the table."""


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
            "collection": hit.entity.collection,
            "text": excerpt(hit.entity.text),
        }
        for hit in result.hits
    ]
    if as_json:
        counts = {"searchable": result.searchable, "entities": result.entities}
        show({"hits": hits} | counts, as_json=True, title="Search")
        return
    rows = [_row(hit) for hit in result.hits]
    show_rows(rows, as_json=False, title=f"“{query}”", empty="Nothing found.")
    if result.searchable < result.entities:
        console.print(
            f"{result.searchable} of {result.entities} entities have a vector: "
            "see `embed-pipeline coverage`."
        )


def _row(hit: Hit) -> dict[str, object]:
    """Without the collection, which the key names already: a table is narrow."""
    entity = hit.entity
    return {
        "score": f"{hit.score:.3f}",
        "name": entity.name,
        "type": entity.entity_type,
        "key": entity.uid,
        "text": _in_a_line(entity),
    }


def _in_a_line(entity: Entity) -> str:
    """The beginning of the text without name and type, which have columns of their own."""
    own = (entity.name, entity.entity_type)
    lines = [line for line in entity.text.splitlines() if line not in own]
    return excerpt(" · ".join(lines), LONGEST_LINE)


def text(name: Name = None, key: Key = None, as_json: AsJson = False) -> None:
    """Show the text of an entity exactly as it is embedded, with its tokens.

    A text that is too long for the model is shown as it is cut. Sends nothing to the provider.

    Example: `embed-pipeline text "Zeer pot"`
    """
    if name is None and key is None:
        raise typer.BadParameter("give a name or a --key")
    with session.services() as (services, _):
        found = text_use_case.text_of(services, name=name, key=key)
    if as_json:
        show(_text_facts(found), as_json=True, title="Text")
    else:
        _print_text(found)


def preview(
    limit: Annotated[
        int, typer.Option(min=1, max=text_use_case.MOST_PREVIEWED, help="How many texts.")
    ] = 5,
    as_json: AsJson = False,
) -> None:
    """Show the first texts as they would be embedded, with their tokens.

    Reads the first hundred entities by key. Sends nothing to the provider and changes nothing.

    Example: `embed-pipeline preview --limit 3`
    """
    with session.services() as (services, _):
        found = text_use_case.preview(services, limit=limit)
    if as_json:
        counts = {"examined": found.examined, "empty": found.empty}
        texts = [_text_facts(one) for one in found.texts]
        show({"texts": texts} | counts, as_json=True, title="Preview")
        return
    for one in found.texts:
        _print_text(one)
        console.print()
    say(
        f"{found.empty} of the first {found.examined} entities have nothing to embed.",
        {},
        as_json=False,
    )


def _print_text(found: EntityText) -> None:
    entity = found.entity
    cut = ", cut to the model's limit" if found.truncated else ""
    title = f"{entity.name or entity.uid} ({entity.uid}): {found.tokens:,} tokens{cut}"
    console.print(title, style="bold", highlight=False, soft_wrap=True)
    console.print(found.text or "Nothing to embed.", highlight=False, soft_wrap=True)


def _text_facts(found: EntityText) -> dict[str, Any]:
    entity = found.entity
    return {
        "key": entity.uid,
        "name": entity.name,
        "type": entity.entity_type,
        "text": found.text,
        "tokens": found.tokens,
        "truncated": found.truncated,
        "version": entity.version,
    }


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


COMMANDS = (search, why, text, preview)
