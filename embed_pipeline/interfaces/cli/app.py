"""All commands in one program. A command ends with a sentence and an exit code, not a traceback."""

from __future__ import annotations

import sys

import typer

from embed_pipeline import __version__
from embed_pipeline.errors import ConfigurationError, EmbedPipelineError
from embed_pipeline.interfaces.cli.commands import (
    adopt,
    collection,
    entities,
    files,
    find,
    graph,
    jobs,
    queue,
    reaper,
    run,
    serve,
    setup,
    uninstall,
)
from embed_pipeline.telemetry import redact

INTERRUPTED = 130

app = typer.Typer(
    name="embed-pipeline",
    help="Keeps every entity of a knowledge graph embedded.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in (setup, adopt, files, run, find, graph, entities, queue, jobs, serve, uninstall):
    for command in module.COMMANDS:
        app.command()(command)
app.add_typer(collection.collection_app)
app.add_typer(reaper.reaper_app)


@app.callback(invoke_without_command=True)
def root(version: bool = typer.Option(False, "--version", help="Show the version.")) -> None:
    if version:
        typer.echo(f"embed-pipeline {__version__}")
        raise typer.Exit


def main() -> None:
    """0: done. 1: an error, or health is not HEALTHY. 2: wrong usage. 130: interrupted."""
    try:
        app()
    except ConfigurationError as error:
        _die("\n".join(error.problems))
    except EmbedPipelineError as error:
        _die(str(error))
    except SystemExit as end:
        # Typer ends an interrupted command without a message.
        if end.code == INTERRUPTED:
            _die("Interrupted; leased jobs were released.", code=INTERRUPTED)
        raise


def _die(sentence: str, *, code: int = 1) -> None:
    sys.stderr.write(redact(sentence) + "\n")
    sys.exit(code)
