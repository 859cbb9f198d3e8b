"""`embed_job` and its ops recover_stale, lease_batch, embed_batch; and recovery as its own job."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import dagster as dg
from pydantic import Field

from embed_pipeline.defs.assets import embeddings_event, is_observation_due, read_embeddings
from embed_pipeline.defs.op import Metadata, Stopwatch, pipeline_op, table
from embed_pipeline.defs.pipeline import Names, Pipeline
from embed_pipeline.domain.control import SwitchState
from embed_pipeline.domain.lease import Lease, RefusalReason
from embed_pipeline.domain.recovery import Recovery
from embed_pipeline.errors import EmbedPipelineError
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.usecases.insight.price import estimated_price
from embed_pipeline.worker import leasing, recover
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.report import RunReport
from embed_pipeline.worker.run import drain
from embed_pipeline.worker.stop import Deadline, StopReason

FIRST = ("embedded", "tokens", "per_second", "seconds", "failed", "leased", "requests")
"""Shown for every run, before the rest: the UI cuts a long list."""


class RecoverConfig(dg.Config):
    strict: bool = Field(
        default=False,
        description="For a run that only recovers: it fails when recovery fails, and recovers even "
        "if EMBED_JOB_RECOVERY_INTERVAL is 0. Otherwise a failure is logged and the run continues.",
    )


class LeaseConfig(dg.Config):
    batch_size: int | None = Field(
        default=None,
        ge=1,
        description="Maximum jobs of the first lease; by default EMBED_JOB_BATCH_SIZE.",
    )


class EmbedConfig(dg.Config):
    # Without bounds: Dagster checks them only when the op starts, and by then jobs are leased.
    drain_seconds: int | None = Field(
        default=None,
        description="How long this run continues to lease new batches; by default"
        " EMBED_RUN_SECONDS.",
    )
    batch_size: int | None = Field(
        default=None,
        description="Maximum jobs of each further lease; by default EMBED_JOB_BATCH_SIZE.",
    )


@pipeline_op("Return the jobs of crashed workers to pending. Their attempts are kept.")
def recover_stale(
    context: dg.OpExecutionContext,
    config: RecoverConfig,
    job_store: dg.ResourceParam[JobStore],
    automatic_recovery: dg.ResourceParam[bool],
) -> int:
    if not (config.strict or automatic_recovery):
        context.log.info("EMBED_JOB_RECOVERY_INTERVAL is 0: stale jobs are left as they are.")
        context.add_output_metadata({"recovered": 0, "state": "automatic recovery is off"})
        return 0
    watch = Stopwatch()
    recover_jobs = recover.recover_stale if config.strict else recover.recover_before_work
    recovery = recover_jobs(job_store)
    context.add_output_metadata(_recovery_metadata(recovery) | watch.speed(len(recovery.jobs)))
    return len(recovery.jobs)


@pipeline_op(
    "Lease due jobs for this run. If there are none, the run ends here.",
    ins={"recovered": dg.In(dg.Nothing)},
    out={
        "leased": dg.Out(Lease, is_required=False, io_manager_key="mem_io_manager"),
        "count": dg.Out(int, io_manager_key="mem_io_manager"),
    },
)
def lease_batch(
    context: dg.OpExecutionContext,
    config: LeaseConfig,
    services: dg.ResourceParam[Services],
    names: dg.ResourceParam[Names],
) -> Iterator[dg.Output[Any]]:
    """`count` is always there, so that a refused lease shows its metadata too."""
    watch = Stopwatch()
    lease = leasing.lease_batch(services, owner=context.run_id, limit=config.batch_size)
    state = _state_of(lease)
    metadata: Metadata = {"state": state, "jobs": len(lease.jobs), "owner": lease.owner}
    metadata |= watch.speed(len(lease.jobs))
    if lease.refusal is not None and lease.refusal.reason is RefusalReason.HALTED:
        raise _halted(lease.refusal.detail, metadata, names)
    yield dg.Output(len(lease.jobs), output_name="count", metadata=metadata)
    if lease.jobs:
        yield dg.Output(lease, output_name="leased")
    elif lease.refusal is not None:
        context.log.warning(state)
    else:
        context.log.info(state)


@pipeline_op("Embed the leased jobs within the shared budget, lease more, release the rest.")
def embed_batch(
    context: dg.OpExecutionContext,
    config: EmbedConfig,
    leased: Lease,
    services: dg.ResourceParam[Services],
    names: dg.ResourceParam[Names],
) -> int:
    given = config.drain_seconds
    limit = services.run_limits.drain_for if given is None else timedelta(seconds=given)
    deadline = Deadline(services.clock, limit=limit)
    report = drain(
        services, owner=leased.owner, first=leased, limit=config.batch_size, deadline=deadline
    )
    metadata = embed_metadata(report, model=services.model)
    if failure := failure_if_halted(services, report, metadata, names):
        raise failure
    context.add_output_metadata(metadata)
    if report.completed:
        _write_figures(context, services, names)
    return report.completed


def _write_figures(context: dg.OpExecutionContext, services: Services, names: Names) -> None:
    """So that the page of the asset shows the first run at once, also where no daemon runs."""
    # Vectors are written and jobs completed: what fails here is reported by observe_job.
    with suppress(EmbedPipelineError):
        if is_observation_due(context.instance, names, services.clock.now()):
            read = read_embeddings(services, context.instance, names)
            context.log_event(embeddings_event(read, context.instance, names))


def embed_job_of(pipeline: Pipeline) -> dg.JobDefinition:
    @dg.graph(
        name=pipeline.names("embed_job"),
        description="Recover, lease a batch, embed it, and continue until the queue is empty.",
    )
    def embed() -> None:
        embed_batch(lease_batch(recover_stale()).leased)

    return pipeline.job(embed, "embed_job", lane="embed", max_runtime=pipeline.embed_runtime)


def recover_stale_job_of(pipeline: Pipeline) -> dg.JobDefinition:
    return pipeline.job(
        recover_stale,
        "recover_stale_job",
        lane="recovery",
        max_runtime=120,
        config=dg.RunConfig(ops={"recover_stale": RecoverConfig(strict=True)}),
    )


def failure_if_halted(
    services: Services, report: RunReport, metadata: Metadata, names: Names
) -> dg.Failure | None:
    reason = _why_halted(services, report)
    return _halted(reason, metadata, names) if reason else None


def _why_halted(services: Services, report: RunReport) -> str | None:
    """An error of this run's requests, or a halt that refused it a further lease."""
    if report.critical or report.stop_reason is not StopReason.REFUSED:
        return report.critical
    switch = services.jobs.switch.read()
    return switch.reason if switch.state is SwitchState.HALTED else None


def _halted(reason: str, metadata: Metadata, names: Names) -> dg.Failure:
    """A green run would hide that nothing is embedded until a person acts.

    A run may find the reason itself, before it leases anything: for example a wrong password.
    """
    return dg.Failure(
        f"{reason.rstrip('.')}. The queue is halted: fix the cause, then launch"
        f" {names('resume_job')}.",
        metadata=metadata,
        allow_retries=False,
    )


def _recovery_metadata(recovery: Recovery) -> Metadata:
    metadata: Metadata = {"recovered": len(recovery.returned), "failed": len(recovery.failed)}
    if recovery.jobs:
        metadata["jobs"] = table(
            [
                {
                    "job": job.id,
                    "entity": job.entity_uid,
                    "previous owner": job.previous_owner or "",
                    "recoveries": job.recoveries,
                    "fate": job.fate.value,
                }
                for job in recovery.jobs
            ]
        )
    return metadata


def _state_of(lease: Lease) -> str:
    if lease.refusal is not None:
        until = f" until {lease.refusal.until:%H:%M:%S} UTC" if lease.refusal.until else ""
        return f"{lease.refusal.reason}{until}: {lease.refusal.detail}"
    if not lease.jobs:
        return "nothing is due"
    return "probe" if lease.probe else "leased"


def embed_metadata(report: RunReport, *, model: str) -> Metadata:
    facts = report.facts()
    metadata: Metadata = {name: facts[name] for name in FIRST if facts[name] is not None}
    metadata |= {name: fact for name, fact in facts.items() if fact}
    price = estimated_price(model, tokens=report.tokens)
    if price is not None:
        metadata["price (USD, estimated)"] = float(price)
    metadata |= {"model": model, "ended because": report.stop_reason.value}
    if report.back_at is not None:
        metadata["back at"] = report.back_at.isoformat(timespec="seconds")
    if report.failures:
        metadata["failures"] = table(
            [
                {
                    "entity": failed.entity_name,
                    "category": failed.failure.category.value,
                    "error": failed.failure.message,
                    "outcome": "failed" if failed.final else "retry planned",
                    "job": failed.job_id,
                }
                for failed in report.failures
            ]
        )
    return metadata
