"""Commands for the installation: prepare the stores, check that everything works."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, replace
from typing import Annotated, Any

import typer

from embed_pipeline import __version__, wiring
from embed_pipeline.domain.check import CheckResult, Condition, note, ok, problem
from embed_pipeline.domain.diagnosis import Remedy
from embed_pipeline.errors import ConfigurationError, EmbedPipelineError
from embed_pipeline.interfaces.cli import session
from embed_pipeline.interfaces.cli.output import say, show_rows
from embed_pipeline.interfaces.cli.parameters import AsJson
from embed_pipeline.interfaces.cli.progress import progress
from embed_pipeline.interfaces.cli.remedies import command_for
from embed_pipeline.settings import Settings, store_at
from embed_pipeline.stores.config import InitOptions
from embed_pipeline.usecases.insight import doctor as checks_of
from embed_pipeline.worker.context import Services

PASSWORDS = ("EMBED_QUEUE_PASSWORD", "EMBED_GRAPH_PASSWORD")
STORES = ("queue", "graph")


def _instead(metavar: str, what: str) -> Any:
    return typer.Option(metavar=metavar, help=f"{what}, instead of the setting's.")


_TRIGGER = typer.Option(
    help="Install (or remove) an APOC trigger that marks what other programs change."
    " Needs admin rights on the graph's server.",
    show_default="left as it is",
)


_REBUILD = typer.Option(
    "--rebuild-index", help="Replace a vector index whose definition has changed."
)


def init(
    queue_uri: Annotated[str | None, _instead("URI", "The queue's server")] = None,
    queue_user: Annotated[str | None, _instead("NAME", "The user for the queue")] = None,
    queue_database: Annotated[str | None, _instead("NAME", "The queue's database")] = None,
    graph_uri: Annotated[str | None, _instead("URI", "The graph's server")] = None,
    graph_user: Annotated[str | None, _instead("NAME", "The user for the graph")] = None,
    graph_database: Annotated[str | None, _instead("NAME", "The graph's database")] = None,
    trigger: Annotated[bool | None, _TRIGGER] = None,
    rebuild_index: Annotated[bool, _REBUILD] = False,
    as_json: AsJson = False,
) -> None:
    """Prepare the stores: tables, constraints, indexes, labels. Can be run again.

    Works on the stores of the settings; an option names another server or database for
    this call. Passwords come from EMBED_QUEUE_PASSWORD and EMBED_GRAPH_PASSWORD, or are asked
    for on a terminal. Prints which databases it prepared, and how many jobs it adopted that
    another program had written into the queue.

    A vector index whose definition differs from the wanted one is only reported, with the time
    that a new one would take. `--rebuild-index` builds it; searches use the old one meanwhile.

    Example: `embed-pipeline init --queue-uri bolt://localhost:7687 --graph-uri bolt://localhost:7688`
    """
    over = _overrides(
        EMBED_QUEUE_URI=queue_uri,
        EMBED_QUEUE_USER=queue_user,
        EMBED_QUEUE_DATABASE=queue_database,
        EMBED_GRAPH_URI=graph_uri,
        EMBED_GRAPH_USER=graph_user,
        EMBED_GRAPH_DATABASE=graph_database,
    )
    options = InitOptions(rebuild_index=rebuild_index, trigger=trigger)
    sentences = _prepare(_settings_with_passwords(over), options)
    say("\n".join(sentences), {"ready": sentences}, as_json=as_json)


def _prepare(settings: Settings, options: InitOptions) -> list[str]:
    with progress("Preparing", total=100) as update:

        def show_progress(what: str, done: int, total: int) -> None:
            update(round(100 * done / max(total, 1)), what)

        return wiring.initialise_stores(settings, replace(options, on_progress=show_progress))


def _overrides(**given: str | None) -> dict[str, str]:
    """The settings that the options give; an address says which store it is of."""
    over = {variable: value for variable, value in given.items() if value is not None}
    queue_uri, graph_uri = given["EMBED_QUEUE_URI"], given["EMBED_GRAPH_URI"]
    if queue_uri:
        over["EMBED_QUEUE_STORE"] = store_at(queue_uri)
    if graph_uri:
        over["EMBED_GRAPH_STORE"] = store_at(graph_uri)
    if over and not (queue_uri or graph_uri):
        over["EMBED_STORE"] = "neo4j"  # unless the settings choose the stores apart
    return over


def _settings_with_passwords(over: dict[str, str]) -> Settings:
    """Asks for missing passwords, if standard input is a terminal."""
    try:
        return session.settings(over)
    except ConfigurationError as error:
        missing = [p for p in PASSWORDS if any(s.startswith(p) for s in error.problems)]
        if not (over and missing and sys.stdin.isatty()):
            raise
    asked = {p: typer.prompt(p, hide_input=True, err=True) for p in missing}
    return session.settings(over | asked)


def doctor(
    request: Annotated[
        bool, typer.Option(help="Also send a request of one word to the provider.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Check settings, databases, schema, APOC, provider, clock and versions.

    Each line is ok, or says how to fix the problem. Exits with 1 if something is broken.

    Example: `embed-pipeline doctor`
    """
    checks = list(_checks(request=request))
    rows = [asdict(check) | {"remedy": _worded(check.remedy)} for check in checks]
    if not as_json:
        rows = [row | {"remedy": row["remedy"] or ""} for row in rows]
    show_rows(rows, as_json=as_json, title="Doctor", empty="")
    if any(check.condition is Condition.BROKEN for check in checks):
        raise typer.Exit(1)


def _worded(remedy: str | None) -> str | None:
    return command_for(remedy) if isinstance(remedy, Remedy) else remedy


def _checks(*, request: bool) -> Iterator[CheckResult]:
    """Later checks need the earlier parts: without settings nothing else can be checked."""
    yield checks_of.versions(__version__, platform.python_version())
    yield checks_of.extras()
    try:
        settings = session.settings(show_notes=False)
    except ConfigurationError as error:
        for sentence in error.problems:
            yield problem("settings", sentence, "Set it in the environment or in .env.")
        return
    stores = settings.stores
    kept = f"queue in {stores.queue}, graph in {stores.graph}"
    yield ok("settings", f"EMBED_ENV is {settings.environment}, {kept}")
    for text in settings.notes:
        yield note("settings", text)
    found = wiring.diagnose_stores(settings)
    yield from found
    if any(check.condition is Condition.BROKEN for check in found):
        return
    with closing(wiring.open_services(settings)) as services:
        # Reading a store file that does not exist yet would create it.
        made = all(check.condition is Condition.OK for check in found if check.part in STORES)
        if made:
            yield from _checks_of_work(services)
        if request:
            yield checks_of.check_provider(services, within_budget=made)


def _checks_of_work(services: Services) -> Iterator[CheckResult]:
    for check in (
        checks_of.check_model,
        checks_of.check_queue_state,
        checks_of.check_audit,
        checks_of.check_unseen,
    ):
        try:
            yield from check(services)
        except EmbedPipelineError as error:
            yield problem("stores", str(error), "embed-pipeline init")


COMMANDS = (init, doctor)
