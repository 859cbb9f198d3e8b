"""Commands on files: entities from a file, jobs into one."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from embed_pipeline.domain.job import JobStatus
from embed_pipeline.interfaces.cli import session
from embed_pipeline.interfaces.cli.output import say, show
from embed_pipeline.interfaces.cli.parameters import TIME_FORMATS, AsJson
from embed_pipeline.interfaces.cli.progress import progress, terminated_like_ctrl_c
from embed_pipeline.usecases.files.columns import ColumnChoice
from embed_pipeline.usecases.files.export import export_jobs
from embed_pipeline.usecases.files.load import LoadReport, load_file
from embed_pipeline.usecases.files.source import STDIN

InputFile = Annotated[
    Path,
    typer.Argument(
        help="A .csv, .tsv, .json, .jsonl, .xlsx or .parquet file, also .gz; - for standard input."
    ),
]
NameColumn = Annotated[str | None, typer.Option("--name", help="The column of names.")]
TextColumns = Annotated[
    str | None, typer.Option("--text", help="The columns to embed, in order, separated by commas.")
]
TypeColumn = Annotated[str | None, typer.Option("--type", help="The column of types.")]
KeyColumn = Annotated[str | None, typer.Option("--key", help="The column of keys.")]
OfCollection = Annotated[
    str | None,
    typer.Option("--collection", help="The collection of the rows.", show_default="the first"),
]
FileFormat = Annotated[
    str | None, typer.Option("--format", help="The format, if the name does not tell it.")
]


def load(
    file: InputFile,
    name: NameColumn = None,
    text: TextColumns = None,
    entity_type: TypeColumn = None,
    key: KeyColumn = None,
    collection: OfCollection = None,
    file_format: FileFormat = None,
    as_json: AsJson = False,
) -> None:
    """Create or update the entities of a file and queue what changed.

    Columns are named as the mapped properties (uid, name, entityType, observations), or by options:
    the columns of `--text` become the observations, in order. Other columns are ignored. In CSV
    and Excel a text that is a JSON list becomes a list. Bad rows are reported with their line and
    the command exits with 1; all other rows are stored. A cell of more than 10 MB or a row of more
    than 50 MB is a bad row. Loading the same file again changes nothing.

    Examples: `embed-pipeline load examples/sample_graph.csv`,
    `embed-pipeline load books.xlsx --name title --text title,description --type genre --key isbn`,
    `cat graph.jsonl | embed-pipeline load - --format jsonl`
    """
    texts = tuple(each.strip() for each in (text or "").split(",") if each.strip())
    with session.services() as (services, _), progress("Loading") as update:
        report = load_file(
            services,
            file,
            columns=ColumnChoice(
                name=name, entity_type=entity_type, key=key, text=texts, collection=collection
            ),
            file_format=file_format,
            on_page=lambda so_far: update(so_far.rows, f"rows, {so_far.refused:,} refused"),
        )
    title = f"Loaded {'standard input' if file == STDIN else file.name}"
    show(_facts(report), as_json=as_json, title=title)
    if report.refused:
        raise typer.Exit(1)


def _facts(report: LoadReport) -> dict[str, object]:
    return {
        "rows": report.rows,
        "created": report.created,
        "changed": report.changed,
        "unchanged": report.unchanged,
        "new_jobs": report.new_jobs,
        "refused": report.refused,
        "bad_rows": report.bad_rows(),
        "ignored_columns": report.ignored_columns,
    } | ({} if report.queued else {"queue": "unreachable; discovery will queue these entities"})


def export(
    file: Annotated[Path, typer.Argument(help="The file to write, ending with .csv or .parquet.")],
    status: Annotated[JobStatus | None, typer.Option(help="Only jobs of this status.")] = None,
    since: Annotated[
        datetime | None,
        typer.Option(formats=TIME_FORMATS, help="Only jobs that ended since then (UTC)."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an existing file.")
    ] = False,
    spreadsheet: Annotated[
        bool,
        typer.Option("--spreadsheet", help="CSV for Excel and the like: formulas are escaped."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write jobs to a CSV or Parquet file, with errors and stacks.

    Texts are written exactly as they are, also those that a spreadsheet would run as a formula
    (`=1+1`). With `--spreadsheet` a cell that starts with =, +, -, @, a tab or a line break gets an
    apostrophe in front.

    Example: `embed-pipeline export failures.parquet --status failed`
    """
    with (
        session.job_store() as (jobs, _),
        terminated_like_ctrl_c(),
        progress("Exporting") as update,
    ):
        count = export_jobs(
            jobs.history,
            file,
            status=status,
            since=since and since.replace(tzinfo=UTC),
            overwrite=overwrite,
            spreadsheet=spreadsheet,
            on_page=lambda done: update(done, "jobs"),
        )
    say(f"Wrote {count:,} jobs to {file}.", {"jobs": count, "file": str(file)}, as_json=as_json)


COMMANDS = (load, export)
