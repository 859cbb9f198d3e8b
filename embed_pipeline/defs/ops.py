"""The five ops, by their names; each is a shell around the worker's verb of that name."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import dagster as dg
from pydantic import Field

from embed_pipeline.defs.metadata import (
    Metadata,
    Stopwatch,
    cleanup_metadata,
    discovery_metadata,
    lease_metadata,
    recovery_metadata,
    tally_metadata,
)
from embed_pipeline.defs.op import PATIENT, pipeline_op
from embed_pipeline.domain.lease import Lease, RefusalReason
from embed_pipeline.domain.switch import SwitchState
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.usecases.entities import discover
from embed_pipeline.usecases.queue.control import cleanup_ttl as clean_up
from embed_pipeline.worker import leasing as lease
from embed_pipeline.worker import recover
from embed_pipeline.worker.context import RunLimits, Services
from embed_pipeline.worker.report import RunReport
from embed_pipeline.worker.run import drain
from embed_pipeline.worker.stop import Deadline, StopReason


class RecoverConfig(dg.Config):
    strict: bool = Field(
        default=False,
        description="For a run that only recovers: it fails when recovery fails, and recovers even "
        "where EMBED_JOB_RECOVERY_INTERVAL is 0. Else a failure is logged and the run goes on.",
    )


class LeaseConfig(dg.Config):
    batch_size: int | None = Field(
        default=None,
        ge=1,
        description="Most jobs of the first lease; by default EMBED_JOB_BATCH_SIZE.",
    )


class EmbedConfig(dg.Config):
    # Without bounds: Dagster checks them only when the op starts, and by then jobs are leased.
    drain_seconds: int = Field(
        default=240, description="How long this run goes on leasing new batches."
    )
    batch_size: int | None = Field(
        default=None,
        description="Most jobs of each further lease; by default EMBED_JOB_BATCH_SIZE.",
    )


class CleanupConfig(dg.Config):
    older_than_days: int | None = Field(
        default=None,
        ge=0,
        le=36_500,
        description="Delete what ended before; by default EMBED_JOB_RETENTION_DAYS.",
    )


class DiscoverConfig(dg.Config):
    most_jobs: int = Field(default=5_000, ge=1, description="Stop after queueing so many new jobs.")
    most_read: int = Field(default=50_000, ge=1, description="Stop after reading so many entities.")


@pipeline_op("Return jobs of vanished workers to pending; attempts are kept.")
def recover_stale(
    context: dg.OpExecutionContext,
    config: RecoverConfig,
    job_store: dg.ResourceParam[JobStore],
    automatic_recovery: dg.ResourceParam[bool],
) -> int:
    if not (config.strict or automatic_recovery):
        context.log.info("EMBED_JOB_RECOVERY_INTERVAL is 0: stale jobs are left where they are.")
        context.add_output_metadata({"recovered": 0, "state": "automatic recovery is off"})
        return 0
    watch = Stopwatch()
    verb = recover.recover_stale if config.strict else recover.recover_before_work
    recovery = verb(job_store)
    context.add_output_metadata(recovery_metadata(recovery) | watch.speed(len(recovery.jobs)))
    return len(recovery.jobs)


@pipeline_op(
    "Take due jobs for this run; without any, the run ends here.",
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
) -> Iterator[dg.Output[Any]]:
    """`count` is there for every lease, so that one that was refused is told too."""
    watch = Stopwatch()
    leased = lease.lease_batch(services, owner=context.run_id, limit=config.batch_size)
    metadata = lease_metadata(leased) | watch.speed(len(leased.jobs))
    if leased.refusal is not None and leased.refusal.reason is RefusalReason.HALTED:
        raise _halted(leased.refusal.detail, metadata)
    yield dg.Output(len(leased.jobs), output_name="count", metadata=metadata)
    if leased.jobs:
        yield dg.Output(leased, output_name="leased")
    elif leased.refusal is not None:
        context.log.warning(metadata["state"])
    else:
        context.log.info(metadata["state"])


@pipeline_op("Embed the leased jobs within the shared budget, lease again, give back the rest.")
def embed_batch(
    context: dg.OpExecutionContext,
    config: EmbedConfig,
    leased: Lease,
    services: dg.ResourceParam[Services],
) -> int:
    deadline = Deadline(services.clock, limit=timedelta(seconds=config.drain_seconds))
    tally = drain(
        services, owner=leased.owner, first=leased, limit=config.batch_size, deadline=deadline
    )
    metadata = tally_metadata(tally, model=services.model)
    if reason := _why_halted(services, tally):
        raise _halted(reason, metadata)
    context.add_output_metadata(metadata)
    return tally.completed


def _why_halted(services: Services, tally: RunReport) -> str | None:
    """An error of this run's requests, or what the look before a further lease found."""
    if tally.critical or tally.stop_reason is not StopReason.REFUSED:
        return tally.critical
    switch = services.jobs.switch.read()
    return switch.reason if switch.state is SwitchState.HALTED else None


def _halted(reason: str, metadata: Metadata) -> dg.Failure:
    """A green run would hide that nothing goes on until somebody acts.

    It may be this very run that found the reason before it leased anything: a wrong password.
    """
    return dg.Failure(
        f"{reason.rstrip('.')}. The queue is halted: mend it, then resume.",
        metadata=metadata,
        allow_retries=False,
    )


@pipeline_op("Delete completed and failed jobs past their retention.", retry_policy=PATIENT)
def cleanup_ttl(
    context: dg.OpExecutionContext,
    config: CleanupConfig,
    job_store: dg.ResourceParam[JobStore],
    run_limits: dg.ResourceParam[RunLimits],
) -> int:
    days = config.older_than_days
    older_than = run_limits.retention if days is None else timedelta(days=days)
    watch = Stopwatch()
    report = clean_up(job_store, older_than=older_than)
    context.add_output_metadata(cleanup_metadata(report, older_than) | watch.speed(report.jobs))
    return report.jobs


@pipeline_op("Queue entities whose vector is missing or spoilt.", retry_policy=PATIENT)
def discover_missing_embeddings(
    context: dg.OpExecutionContext,
    config: DiscoverConfig,
    services: dg.ResourceParam[Services],
) -> int:
    bounds = discover.Bounds(most_jobs=config.most_jobs, most_read=config.most_read)
    watch = Stopwatch()
    report = discover.discover(services, bounds=bounds)
    context.add_output_metadata(discovery_metadata(report) | watch.speed(report.examined))
    return report.new_jobs
