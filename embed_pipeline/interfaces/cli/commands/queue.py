"""Commands on the queue: its state, its switch, recovery and cleanup."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Annotated

import typer

from embed_pipeline.domain.health import HealthStatus
from embed_pipeline.domain.job import QueueStatus
from embed_pipeline.errors import CriticalError, TransientError
from embed_pipeline.interfaces.cli import session
from embed_pipeline.interfaces.cli.output import say, show
from embed_pipeline.interfaces.cli.parameters import AsJson, utf8
from embed_pipeline.usecases.insight.forecast import read_forecast
from embed_pipeline.usecases.insight.health import read_health, untaken_jobs
from embed_pipeline.usecases.queue import control
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.recover import recover_stale

Reason = Annotated[
    str, typer.Option(help="Why. Status and health show it.", metavar="TEXT", parser=utf8)
]


def status(as_json: AsJson = False) -> None:
    """Count the jobs by status, and tell what is left, how fast it goes and how long it takes.

    It is done when nothing is pending, processing or missing.

    Example: `embed-pipeline status --json`
    """
    with session.services() as (services, _):
        counts, switch = services.jobs.get_queue_status(), services.jobs.switch.read()
        progress = _progress(services, counts)
        untaken = untaken_jobs(services.jobs, model=services.model)
    facts = asdict(counts) | {"total": counts.total, "queue": switch.state.value}
    if switch.reason and not switch.is_running:
        facts["reason"] = switch.reason
    if untaken:
        facts["untaken"] = untaken
    show(facts | progress, as_json=as_json, title="Queue")


def _progress(services: Services, counts: QueueStatus) -> dict[str, object]:
    try:
        forecast = read_forecast(services, counts)
    except (TransientError, CriticalError) as error:
        # The queue's own state matters also while the graph is down.
        return {"left": f"unknown: {error}"}
    seconds = None if forecast.eta is None else round(forecast.eta.total_seconds())
    return {
        "left": forecast.left,
        "per_second": forecast.per_second and round(forecast.per_second, 1),
        "eta_seconds": seconds,
        "done": forecast.is_done,
    }


def health(as_json: AsJson = False) -> None:
    """Show HEALTHY, DEGRADED or CRITICAL, and why. Exits with 1 unless HEALTHY.

    Example: `embed-pipeline health || page-on-call`
    """
    try:
        with session.services() as (services, _):
            report = read_health(services.jobs, model=services.model)
    except (TransientError, CriticalError) as error:
        facts = {"status": "CRITICAL (queue unreachable)", "reasons": [str(error)]}
        show(facts, as_json=as_json, title="Health")
        raise typer.Exit(1) from error
    facts = asdict(report) | {"status": report.status.value}
    if not as_json:
        rate = report.success_rate
        facts["success_rate"] = "unknown" if rate is None else f"{rate:.0%} of the last 100"
        facts["error_patterns"] = [f"{count} × {name}" for name, count in report.error_patterns]
    show(facts, as_json=as_json, title="Health")
    if report.status is not HealthStatus.HEALTHY:
        raise typer.Exit(1)


def recover(as_json: AsJson = False) -> None:
    """Return jobs whose lease has expired to pending, now.

    Example: `embed-pipeline recover`
    """
    with session.job_store() as (jobs, _):
        recovery = recover_stale(jobs)
    facts = {
        "recovered": [job.id for job in recovery.returned],
        "failed": [job.id for job in recovery.failed],
        "previous_owners": recovery.previous_owners,
    }
    owners = f" of {', '.join(recovery.previous_owners)}" if recovery.previous_owners else ""
    sentence = f"Recovered {len(recovery.returned)} jobs{owners}."
    if recovery.failed:
        sentence += f" {len(recovery.failed)} crashed every worker and are marked failed."
    say(sentence, facts, as_json=as_json)


def cleanup(
    older_than: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=36_500,
            metavar="DAYS",
            help="Delete what ended earlier. Default: the retention setting.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Delete completed and failed jobs, and events, that are older than the retention.

    Example: `embed-pipeline cleanup --older-than 7`
    """
    with session.job_store() as (jobs, settings):
        days = settings.queue.retention if older_than is None else timedelta(days=older_than)
        report = control.cleanup_ttl(jobs, older_than=days)
    say(
        f"Deleted {report.completed} completed and {report.failed} failed jobs, "
        f"and {report.events} events, older than {days.days} days.",
        asdict(report),
        as_json=as_json,
    )


def pause(reason: Reason = "paused by hand", as_json: AsJson = False) -> None:
    """Stop leasing new jobs until `resume`. Jobs already leased are completed.

    Example: `embed-pipeline pause --reason "maintenance tonight"`
    """
    with session.job_store() as (jobs, _):
        switch = control.pause(jobs, reason=reason)
    say(f"The queue is {switch.state}: {switch.reason}.", asdict(switch), as_json=as_json)


def resume(reason: Reason = "resumed by hand", as_json: AsJson = False) -> None:
    """Start leasing again after a pause or a halt.

    Example: `embed-pipeline resume --reason "new key in place"`
    """
    with session.job_store() as (jobs, _):
        _, switch = control.resume(jobs, reason=reason)
    say(f"The queue is {switch.state}.", asdict(switch), as_json=as_json)


COMMANDS = (status, health, recover, cleanup, pause, resume)
