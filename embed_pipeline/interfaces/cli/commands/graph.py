"""Commands on the graph: how much is embedded, what is missing, and queueing it."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from embed_pipeline.domain.diagnosis import Remedy
from embed_pipeline.domain.partition import Coverage
from embed_pipeline.interfaces.cli import session
from embed_pipeline.interfaces.cli.output import say, show, show_rows
from embed_pipeline.interfaces.cli.parameters import TIME_FORMATS, AsJson, Key, Name
from embed_pipeline.interfaces.cli.progress import progress, terminated_like_ctrl_c
from embed_pipeline.interfaces.cli.remedies import command_for
from embed_pipeline.interfaces.cli.session import worker_id
from embed_pipeline.usecases.entities import audit as audit_use_case
from embed_pipeline.usecases.entities import discover as discover_use_case
from embed_pipeline.usecases.entities import force as force_use_case
from embed_pipeline.usecases.insight import search as search_use_case
from embed_pipeline.usecases.insight import summary as summary_use_case
from embed_pipeline.usecases.insight.coverage import CoverageReport, read_coverage

_MEANINGS = {
    "entities": "valid entities of the graph",
    "embedded": "have a vector",
    "missing": "have no vector of this model: no search finds them",
    "stale": "have the vector of an earlier text",
    "wrong_model": "have a vector of another model: no search uses it",
    "wrong_dimension": "have a vector of a wrong length: no search uses it",
    "invalid": "have a vector that is zero or not finite, in a sample",
    "nothing_to_embed": "have no text, so they need no vector",
    "excluded": "are deleted, erased, filtered out, or have no usable key",
    "unseen": "excluded ones without a usable key: nothing can name them",
    "failed": "jobs that failed and are parked",
    "queued": "jobs that wait or are in work",
}
_DEFECTS = ("missing", "stale", "wrong_model", "wrong_dimension", "invalid")
_JOBS = {Remedy.RETRY_FAILED: "failed", Remedy.RUN: "queued", Remedy.RESUME: "queued"}


def coverage(
    exact: Annotated[
        bool, typer.Option("--exact", help="Read the whole graph instead of its counts.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """How many entities have a vector, what the others lack, and what closes each gap.

    From counts, in milliseconds. Stale, wrong and invalid vectors are those that the last
    complete audit found; with `--exact` they are looked for now.

    Examples: `embed-pipeline coverage`, `embed-pipeline coverage --exact`
    """
    with session.services() as (services, _):
        total = services.graph.counts(model=services.model).entities if exact else None
        with progress("Reading entities", total=total) as update:
            report = read_coverage(
                services, exact=exact, on_page=lambda so_far: update(so_far.examined, "")
            )
        model = services.model
    counted, commands = report.coverage, _commands(report)
    counts = asdict(counted) | {"failed": report.queue.failed, "queued": report.queued}
    audit = counts.pop("audit")
    counts.pop("collections")
    if as_json:
        facts = counts | {"percent": counted.percent, "model": model, "remedies": commands}
        each = {name: one.shown() for name, one in counted.collections.items()}
        facts |= {"audit": audit, "exact": exact, "collections": each}
        show(facts, as_json=True, title="Coverage")
        return
    share = "no entities yet" if counted.percent is None else f"{counted.percent:.1f} %"
    rows = [
        {"state": name.replace("_", " "), "count": count, "meaning": _MEANINGS[name]}
        | {"next step": commands.get(name, "")}
        for name, count in counts.items()
    ]
    show_rows(rows, as_json=False, title=f"Coverage of {model}: {share}", empty="")
    _show_collections(counted)
    if not exact:
        say(_audit_note(counted), {}, as_json=False)


def _show_collections(counted: Coverage) -> None:
    if len(counted.collections) > 1:
        each = [{"collection": name, **one.shown()} for name, one in counted.collections.items()]
        show_rows(each, as_json=False, title="Collections", empty="")


def _audit_note(counted: Coverage) -> str:
    if counted.audit is None:
        return (
            "No audit is complete yet, so stale and wrong vectors are unknown: embed-pipeline audit"
        )
    return f"The last audit ended on {counted.audit.at:%Y-%m-%d %H:%M} UTC."


def _commands(report: CoverageReport) -> dict[str, str]:
    """The next command for each row of the table that needs one."""
    gaps = [name for name in _DEFECTS if getattr(report.coverage, name)]
    jobs = {_JOBS[remedy]: command_for(remedy) for remedy in report.remedies if remedy in _JOBS}
    first = next(iter(report.remedies), None)
    return (dict.fromkeys(gaps, command_for(first)) if first else {}) | jobs


def discover(
    everything: Annotated[
        bool,
        typer.Option(
            "--all", help="Queue all that lack a vector, without a bound and without an audit."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find entities without a good vector and queue them.

    Queues at most 5,000 and audits at most 50,000 entities for changed texts; it says how many
    are left. With `--all` there is no bound, and no audit.

    Examples: `embed-pipeline discover`, `embed-pipeline discover --all`
    """
    with session.services() as (services, _):
        counts = services.graph.counts(model=services.model)
        with progress("Queueing", total=counts.missing if everything else None) as update:
            report = discover_use_case.discover(
                services,
                bounds=discover_use_case.WITHOUT_BOUND if everything else None,
                owner=worker_id(),
                on_page=lambda so_far: update(so_far.examined, f"{so_far.new_jobs:,} queued"),
            )
    show(asdict(report), as_json=as_json, title="Discovery")
    if as_json:
        return
    if report.busy:
        say(f"Another discovery is at work: {report.busy}.", {}, as_json=False)
    elif report.left:
        say(f"About {report.left:,} are left: embed-pipeline discover --all", {}, as_json=False)


def audit(as_json: AsJson = False) -> None:
    """Compare every entity with its vector and labels, and mark what has changed.

    Finds what other programs did: changed texts, removed vectors and labels. `discover` queues
    what it marks. Continues where the last audit was stopped; Ctrl-C loses nothing.

    Example: `embed-pipeline audit`
    """
    with session.services() as (services, _), terminated_like_ctrl_c():
        total = services.graph.counts(model=services.model).entities
        with progress("Auditing", total=total) as update:
            report = audit_use_case.audit(
                services,
                owner=worker_id(),
                on_page=lambda current: update(
                    current.counts.examined, f"{current.counts.marked:,} marked"
                ),
            )
    last = report.record.last if report.complete else None
    counts = (last or report).counts
    facts = {"examined": counts.examined} | asdict(counts)
    if last is not None and last.duration is not None:
        facts |= {"started_at": last.started_at, "ended_at": last.ended_at}
        facts |= {"seconds": last.duration.total_seconds()}
    show(facts | {"busy": report.busy}, as_json=as_json, title="Audit")
    if report.busy:
        raise typer.Exit(1)


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


COMMANDS = (coverage, discover, audit, force, summary)
