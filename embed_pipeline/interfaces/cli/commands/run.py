"""The command that embeds: run."""

from __future__ import annotations

import typer

from embed_pipeline.interfaces.cli import session
from embed_pipeline.interfaces.cli.output import show
from embed_pipeline.interfaces.cli.parameters import AsJson
from embed_pipeline.interfaces.cli.progress import OnProgress, progress, terminated_like_ctrl_c
from embed_pipeline.interfaces.cli.session import worker_id
from embed_pipeline.usecases.insight.forecast import budget_rate, read_forecast
from embed_pipeline.worker.loop import run_until_empty
from embed_pipeline.worker.report import RunReport
from embed_pipeline.worker.stop import Deadline, StopReason


def run(as_json: AsJson = False) -> None:
    """Embed the queued jobs in this process, without Dagster. Waits when the budget is used up.

    Recovers jobs with an expired lease first. Ctrl-C releases the leased jobs. Exits with 1 if a
    job failed, or if the queue is paused or halted.

    Example: `embed-pipeline run`
    """
    with session.services() as (services, settings), terminated_like_ctrl_c():
        queued = services.jobs.get_queue_status()
        total, ceiling = queued.pending + queued.processing, budget_rate(services)
        with progress("Embedding", total=total, ceiling=ceiling) as update:
            tally = run_until_empty(
                services,
                owner=worker_id(),
                recovery_interval=settings.queue.recovery_interval,
                deadline=Deadline(services.clock, limit=None),
                on_batch=_LiveView(update),
            )
        switch = services.jobs.switch.read()
        forecast = read_forecast(services, services.jobs.get_queue_status())
    stopped = {} if switch.is_running else {"queue": f"{switch.state}: {switch.reason}"}
    facts = _summary(tally) | {"left": forecast.left, "done": forecast.is_done} | stopped
    show(facts, as_json=as_json, title="Run")
    if tally.failed or tally.stop_reason in (StopReason.REFUSED, StopReason.HALTED):
        raise typer.Exit(1)


class _LiveView:
    """Sums the rounds of a run, each of which counts from 0."""

    def __init__(self, update: OnProgress) -> None:
        self._update = update
        self._before, self._now = RunReport(), RunReport()

    def __call__(self, so_far: RunReport) -> None:
        if so_far.leased < self._now.leased:
            self._before = self._before.plus(self._now)
        self._now = so_far.plus(RunReport())
        total = self._before.plus(self._now)
        rate = total.per_second
        words = [f"{rate:,.0f} per second"] if rate else []
        words += [f"{total.failed:,} failed"] if total.failed else []
        words += [f"{total.requests:,} requests"] if total.requests else []
        self._update(total.completed + total.failed, ", ".join(words))


def _summary(tally: RunReport) -> dict[str, object]:
    facts = {name: value for name, value in tally.facts().items() if value}
    failures = [f"{failed.entity_name}: {failed.failure.message}" for failed in tally.failures]
    return (
        {"completed": tally.completed}
        | facts
        | {
            "failures": failures[:20],
            "ended_because": tally.stop_reason.value,
        }
    )


COMMANDS = (run,)
