"""Commands that take over a graph of other programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from embed_pipeline import wiring
from embed_pipeline.errors import RequestError
from embed_pipeline.interfaces.cli import session
from embed_pipeline.interfaces.cli.output import console, say, show, show_rows
from embed_pipeline.interfaces.cli.parameters import AsJson
from embed_pipeline.usecases.adopt.config_file import as_yaml
from embed_pipeline.usecases.adopt.propose import Proposal, ProposedCollection, propose

FILE = "collections.yaml"


def adopt(
    write: Annotated[
        Path | None, typer.Option("--write", metavar="FILE", help="Write the YAML to this file.")
    ] = None,
    give_keys: Annotated[
        str | None,
        typer.Option(
            "--give-keys",
            metavar="LABEL",
            help="Give nodes of this label that have no uid one, in batches, and look again.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Look at a graph of other programs and propose the collections that embed it.

    Explains which labels have a key and a text, and prints the file for EMBED_CONFIG. Counts of
    nodes are exact, everything else is from 1,000 nodes of each label. Changes nothing, except
    with `--give-keys`.

    Examples: `embed-pipeline adopt`, `embed-pipeline adopt --write collections.yaml`
    """
    settings = session.settings()
    given = wiring.give_keys(settings, give_keys) if give_keys else 0
    proposal = propose(wiring.survey_graph(settings))
    if write is not None and proposal.collections:
        _write(write, as_yaml(proposal))
    following = _next_command(proposal, write)
    if as_json:
        facts = asdict(proposal) | {"yaml": as_yaml(proposal), "given": given, "next": following}
        show(facts, as_json=True, title="Adopt")
        return
    if give_keys:
        say(f"{given:,} nodes labelled {give_keys} were given a uid.", {}, as_json=False)
    _explain(proposal)
    if write is None and proposal.collections:
        console.print(as_yaml(proposal), highlight=False, soft_wrap=True)
    console.print(following, style="bold", highlight=False, soft_wrap=True)


def _write(path: Path, content: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(content)
    except FileExistsError as error:
        raise RequestError(f"{path} is there already: choose another name.") from error
    except OSError as error:
        raise RequestError(f"{path} cannot be written: {error.strerror or error}.") from error


def _explain(proposal: Proposal) -> None:
    show_rows(
        [_row(one) for one in proposal.collections],
        as_json=False,
        title=f"{proposal.entities:,} entities, about {proposal.tokens:,} tokens",
        empty="No label has both a key and a text.",
    )
    for label in proposal.without_key:
        console.print(
            f"{label} ({proposal.nodes[label]:,} nodes) has texts, but nothing identifies its"
            f" nodes: embed-pipeline adopt --give-keys {label}",
            highlight=False,
            soft_wrap=True,
        )
    if proposal.without_text:
        console.print(
            f"Without a text, so left out: {_counted(proposal, proposal.without_text)}.",
            highlight=False,
            soft_wrap=True,
        )
    for note in proposal.notes:
        console.print(note, highlight=False, soft_wrap=True)
    console.print()


def _row(one: ProposedCollection) -> dict[str, object]:
    certain = "" if one.key_is_certain else ", unique in a sample"
    marked = [f"{name} (HTML)" if name in one.html else name for name in one.properties]
    return {
        "label": one.label,
        "nodes": one.entities,
        "key": f"{one.key} ({one.key_type}{certain})",
        "name": one.name_property,
        "text": ", ".join([*marked, *map(str, one.neighbours)]),
        "tokens": one.tokens,
        "without_text": one.without_text,
    }


def _counted(proposal: Proposal, labels: Sequence[str]) -> str:
    return ", ".join(f"{label} ({proposal.nodes[label]:,})" for label in labels)


def _next_command(proposal: Proposal, written: Path | None) -> str:
    if not proposal.collections and proposal.without_key:
        return f"embed-pipeline adopt --give-keys {proposal.without_key[0]}"
    if not proposal.collections:
        return "embed-pipeline load FILE"
    if written is None:
        return f"embed-pipeline adopt --write {FILE}"
    return f"export EMBED_CONFIG={written}; embed-pipeline init"


COMMANDS = (adopt,)
