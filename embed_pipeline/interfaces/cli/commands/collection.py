"""Commands for the graph's collections: `embed-pipeline collection …`."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated

import typer

from embed_pipeline import wiring
from embed_pipeline.domain.collection import (
    Collection,
    Registered,
    accepted,
    find_registered,
    renamed,
    without,
)
from embed_pipeline.errors import CollectionMismatch, RequestError
from embed_pipeline.interfaces.cli import session
from embed_pipeline.interfaces.cli.output import say, show_rows
from embed_pipeline.interfaces.cli.parameters import AsJson
from embed_pipeline.settings import Settings
from embed_pipeline.usecases.entities.collections import cancel_jobs_of

collection_app = typer.Typer(
    name="collection",
    help="The collections that the graph has registered.",
    no_args_is_help=True,
)

Name = Annotated[str, typer.Argument(help="The name of a collection.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


@collection_app.command("list")
def list_collections(as_json: AsJson = False) -> None:
    """The collections of the graph and of the settings, in the order of their registration.

    Example: `embed-pipeline collection list`
    """
    settings = session.settings()
    registered = wiring.registered_collections(settings)
    described = {one.name: one for one in settings.collections}
    rows = [_row(one, described.pop(one.name, None)) for one in registered]
    rows += [
        {"name": one.name, "label": one.label, "uids": "", "state": "new: embed-pipeline init"}
        for one in described.values()
    ]
    show_rows(rows, as_json=as_json, title="Collections", empty="No collection yet.")


def _row(registered: Registered, described: Collection | None) -> dict[str, str]:
    if described is None:
        state = "not described by the settings"
    elif registered.recipe in ("", described.recipe):
        state = "in use"
    else:
        state = f"changed: embed-pipeline collection accept {registered.name}"
    return {
        "name": registered.name,
        "label": described.label if described else registered.label,
        "uids": f"{registered.prefix}/KEY" if registered.prefix else "KEY",
        "state": state,
    }


@collection_app.command()
def accept(name: Name, yes: Yes = False, as_json: AsJson = False) -> None:
    """Accept that the settings describe another label, key, text or filter than before.

    Says how many texts may be embedded again, and asks. Discovery then queues those that have
    changed; a vector whose text is the same as before stays.

    Example: `embed-pipeline collection accept people`
    """
    settings = session.settings()
    registered = wiring.registered_collections(settings)
    find_registered(registered, name)
    mine = [one for one in settings.collections if one.name == name]
    if not mine:
        raise RequestError(f"The settings do not describe the collection {name}.")
    if accepted(mine, registered) == registered:
        say(f"{name} has not changed.", {"accepted": False}, as_json=as_json)
        return
    if not yes and not typer.confirm(f"{_cost(settings)} Accept it?", err=True):
        raise typer.Exit(1)
    wiring.save_collections(settings, accepted(mine, registered))
    sentence = f"{name} is accepted. Next: embed-pipeline init, then embed-pipeline discover."
    say(sentence, {"accepted": True}, as_json=as_json)


def _cost(settings: Settings) -> str:
    """The refusal of the graph says how many texts are embedded."""
    try:
        with closing(wiring.open_entity_store(settings)) as graph:
            graph.models()
    except CollectionMismatch as error:
        return str(error)
    return "Nothing has to be embedded again."


@collection_app.command()
def rename(
    old: Name,
    new: Annotated[str, typer.Argument(help="The new name.")],
    as_json: AsJson = False,
) -> None:
    """Give a collection another name. Uids, jobs and vectors stay as they are.

    The file of EMBED_CONFIG has to say the new name as well.

    Example: `embed-pipeline collection rename people persons`
    """
    settings = session.settings()
    registered = renamed(wiring.registered_collections(settings), old, new)
    wiring.save_collections(settings, registered)
    say(f"{old} is named {new} now.", {"renamed": new}, as_json=as_json)


@collection_app.command()
def remove(name: Name, yes: Yes = False, as_json: AsJson = False) -> None:
    """Forget a collection, and cancel its pending jobs. Its nodes and vectors stay.

    Refused while a worker holds one of its jobs.

    Example: `embed-pipeline collection remove people`
    """
    settings = session.settings()
    registered = wiring.registered_collections(settings)
    left, prefix = without(registered, name), find_registered(registered, name).prefix
    if not yes and not typer.confirm(f"Forget {name}, and cancel its jobs?", err=True):
        raise typer.Exit(1)
    with closing(wiring.open_job_store(settings)) as jobs:
        cancelled = cancel_jobs_of(jobs, prefix)
    wiring.save_collections(settings, left)
    sentence = f"{name} is removed, and {cancelled:,} jobs are cancelled."
    say(sentence, {"removed": name, "cancelled": cancelled}, as_json=as_json)
