"""Commands on the graph: how much is embedded, what is missing, and queueing it."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from embed_pipeline.domain.diagnosis import Remedy
from embed_pipeline.interfaces.cli import session
from embed_pipeline.interfaces.cli.output import say, show, show_rows
from embed_pipeline.interfaces.cli.parameters import TIME_FORMATS, AsJson, Key, Name
from embed_pipeline.interfaces.cli.progress import progress
from embed_pipeline.interfaces.cli.remedies import command_for
from embed_pipeline.usecases.entities import discover as discover_use_case
from embed_pipeline.usecases.entities import force as force_use_case
from embed_pipeline.usecases.insight import search as search_use_case
from embed_pipeline.usecases.insight import summary as summary_use_case
from embed_pipeline.usecases.insight.coverage import CoverageReport, read_coverage

_MEANINGS = {
    "entities": "valid entities of the graph",
    "embedded": "have a vector of their current text",
    "missing": "have no vector: no search finds them",
    "stale": "have the vector of an earlier text",
    "wrong_model": "have a vector of another model: no search uses it",
    "wrong_dimension": "have a vector of a wrong length: no search uses it",
    "failed": "jobs that failed and are parked",
    "queued": "jobs that wait or are in work",
}
_DEFECTS = ("missing", "stale", "wrong_model", "wrong_dimension")
_JOBS = {Remedy.RETRY_FAILED: "failed", Remedy.RUN: "queued", Remedy.RESUME: "queued"}


def coverage(as_json: AsJson = False) -> None:
    """How many entities have a good vector, what the others lack, and what closes each gap.

    Counted, never estimated, so it reads the whole graph once.

    Example: `embed-pipeline coverage`
    """
    with session.services() as (services, _):
        report, model = read_coverage(services), services.model
    counted, commands = report.coverage, _commands(report)
    counts = asdict(counted) | {"failed": report.queue.failed, "queued": report.queued}
    if as_json:
        facts = counts | {"percent": counted.percent, "model": model, "remedies": commands}
        show(facts, as_json=True, title="Coverage")
        return
    share = "no entities yet" if counted.percent is None else f"{counted.percent:.1f} %"
    rows = [
        {"state": name.replace("_", " "), "count": count, "meaning": _MEANINGS[name]}
        | {"next step": commands.get(name, "")}
        for name, count in counts.items()
    ]
    show_rows(rows, as_json=False, title=f"Coverage of {model}: {share}", empty="")


def _commands(report: CoverageReport) -> dict[str, str]:
    """The next command for each row of the table that needs one."""
    gaps = [name for name in _DEFECTS if getattr(report.coverage, name)]
    jobs = {_JOBS[remedy]: command_for(remedy) for remedy in report.remedies if remedy in _JOBS}
    first = next(iter(report.remedies), None)
    return (dict.fromkeys(gaps, command_for(first)) if first else {}) | jobs


def discover(as_json: AsJson = False) -> None:
    """Find entities without a good vector and queue them.

    Example: `embed-pipeline discover`
    """
    with session.services() as (services, _), progress("Reading entities") as update:
        report = discover_use_case.discover(
            services, on_page=lambda so_far: update(so_far.examined, f"{so_far.new_jobs:,} queued")
        )
    show(asdict(report), as_json=as_json, title="Discovery")


def force(
    name: Name = None,
    key: Key = None,
    limit: Annotated[
        int, typer.Option(help="Without a name: queue at most this many without a vector.")
    ] = force_use_case.DEFAULT_LIMIT,
    as_json: AsJson = False,
) -> None:
    """Embed one entity again, or queue a number of entities without a vector.

    Examples: `embed-pipeline force "Zeer pot"`, `embed-pipeline force --limit 50`
    """
    with session.services() as (services, _):
        report = force_use_case.force_embedding(services, entity_name=name, key=key, limit=limit)
    say(report.message, asdict(report), as_json=as_json)


def summary(
    since: Annotated[
        datetime | None, typer.Option(formats=TIME_FORMATS, help="Work done since then (UTC).")
    ] = None,
    searches: Annotated[
        Path | None, typer.Option(help="A JSON list of {query, expected} to search for.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """One page: coverage, work done, health, and the hits of some searches.

    Without `--since` the work is the latest of all workers, back to a pause of ten minutes.

    Example: `embed-pipeline summary --searches examples/searches.json`
    """
    with session.services() as (services, _):
        page = summary_use_case.summarize(services, since=since and since.replace(tzinfo=UTC))
        queries = summary_use_case.read_queries(searches) if searches else ()
        found = [(query, search_use_case.search(services, query, limit=3)) for query in queries]
    facts = page.facts() | {
        f"“{query}”": [f"{hit.entity.name} ({hit.score:.2f})" for hit in result.hits]
        for query, result in found
    }
    show(facts, as_json=as_json, title="Summary")


COMMANDS = (coverage, discover, force, summary)
