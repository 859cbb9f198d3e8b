"""Commands before the first entity: prepare the stores, look whether everything works."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated, Any

import typer

from embed_pipeline import __version__, wiring
from embed_pipeline.domain.check import CheckResult, Condition, note, ok, problem
from embed_pipeline.domain.diagnosis import Remedy
from embed_pipeline.errors import ConfigurationError, EmbedPipelineError
from embed_pipeline.interfaces.cli import session
from embed_pipeline.interfaces.cli.output import AsJson, say, show_rows
from embed_pipeline.interfaces.cli.remedies import command_for
from embed_pipeline.settings import Settings
from embed_pipeline.usecases.insight import doctor as examining
from embed_pipeline.worker.context import Services

PASSWORDS = ("EMBED_QUEUE_PASSWORD", "EMBED_GRAPH_PASSWORD")
STORES = ("queue", "graph")


def _instead(metavar: str, what: str) -> Any:
    return typer.Option(metavar=metavar, help=f"{what}, instead of the setting's.")


def init(
    queue_uri: Annotated[str | None, _instead("URI", "The queue's server")] = None,
    queue_user: Annotated[str | None, _instead("NAME", "The user for the queue")] = None,
    queue_database: Annotated[str | None, _instead("NAME", "The queue's database")] = None,
    graph_uri: Annotated[str | None, _instead("URI", "The graph's server")] = None,
    graph_user: Annotated[str | None, _instead("NAME", "The user for the graph")] = None,
    graph_database: Annotated[str | None, _instead("NAME", "The graph's database")] = None,
    as_json: AsJson = False,
) -> None:
    """Prepare the stores: tables, constraints, indexes. Touches no entity; may be run again.

    Works on the stores of the settings; an option names another server or database for
    this call. Passwords come from EMBED_QUEUE_PASSWORD and EMBED_GRAPH_PASSWORD, or are asked
    for on a terminal. Says which databases it prepared, and how many jobs it adopted that another
    program had written into the queue.

    Example: `embed-pipeline init --queue-uri bolt://localhost:7687 --graph-uri bolt://localhost:7688`
    """
    said = {
        "EMBED_QUEUE_URI": queue_uri,
        "EMBED_QUEUE_USER": queue_user,
        "EMBED_QUEUE_DATABASE": queue_database,
        "EMBED_GRAPH_URI": graph_uri,
        "EMBED_GRAPH_USER": graph_user,
        "EMBED_GRAPH_DATABASE": graph_database,
    }
    over = {variable: value for variable, value in said.items() if value is not None}
    if over:
        over["EMBED_STORE"] = "neo4j"
    if queue_uri:
        over["EMBED_QUEUE_STORE"] = "postgres" if queue_uri.startswith("postgres") else "neo4j"
    if graph_uri:
        over["EMBED_GRAPH_STORE"] = "neo4j"
    sentences = wiring.initialise_stores(_settings_with_passwords(over))
    say("\n".join(sentences), {"ready": sentences}, as_json=as_json)


def _settings_with_passwords(over: dict[str, str]) -> Settings:
    """Asks only for what is missing, and only a person who is there to answer."""
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
        bool, typer.Option(help="Also send the provider one request of one word.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Look at settings, databases, schema, APOC, provider, clock and versions.

    Each line is ok, or says how to mend it. Exits with 1 when something is broken.

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
    """Later parts need earlier ones: without settings nothing else can be looked at."""
    yield examining.versions(__version__, platform.python_version())
    yield examining.extras()
    try:
        settings = session.settings(say_notes=False)
    except ConfigurationError as error:
        for sentence in error.problems:
            yield problem("settings", sentence, "Set it in the environment or in .env.")
        return
    stores = settings.stores
    kept = f"queue in {stores.queue}, graph in {stores.graph}"
    yield ok("settings", f"EMBED_ENV is {settings.environment}, {kept}")
    for remark in settings.notes:
        yield note("settings", remark)
    found = wiring.diagnose_stores(settings)
    yield from found
    if any(check.condition is Condition.BROKEN for check in found):
        return
    with session.opened_tools(settings) as services:
        # A file that is not there yet would be made by a look into it.
        made = all(check.condition is Condition.OK for check in found if check.part in STORES)
        if made:
            yield from _checks_of_work(services)
        if request:
            yield examining.check_provider(services, within_budget=made)


def _checks_of_work(services: Services) -> Iterator[CheckResult]:
    for look in (examining.check_model, examining.check_queue_state):
        try:
            yield from look(services)
        except EmbedPipelineError as error:
            yield problem("stores", str(error), "embed-pipeline init")


def add_to(app: typer.Typer) -> None:
    for command in (init, doctor):
        app.command()(command)
