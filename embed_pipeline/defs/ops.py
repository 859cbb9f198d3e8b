"""The five ops, by their names; each is a shell around the worker's verb of that name."""

from collections.abc import Iterator
from datetime import timedelta

import dagster as dg
from pydantic import Field

from embed_pipeline.defs.metadata import (
    cleanup_metadata,
    discovery_metadata,
    lease_metadata,
    recovery_metadata,
    tally_metadata,
)
from embed_pipeline.model.lease import Lease
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.worker import cleanup, discover, drain, lease, recover
from embed_pipeline.worker.pace import Pace
from embed_pipeline.worker.tools import Plan, Tools

IN_MEMORY = dg.Out(io_manager_key="mem_io_manager")

PATIENT = dg.RetryPolicy(max_retries=2, delay=2, backoff=dg.Backoff.EXPONENTIAL)
"""For ops that may be repeated; leasing and embedding never are: the queue is their retry."""


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


@dg.op(out=IN_MEMORY, description="Return jobs of vanished workers to pending; attempts are kept.")
def recover_stale(
    context: dg.OpExecutionContext,
    config: RecoverConfig,
    job_store: dg.ResourceParam[JobStore],
    automatic_recovery: dg.ResourceParam[bool],
) -> int:
    if not (config.strict or automatic_recovery):
        context.log.info("EMBED_JOB_RECOVERY_INTERVAL is 0: stale jobs are left where they are.")
        return 0
    verb = recover.recover_stale if config.strict else recover.recover_before_work
    recovery = verb(job_store)
    context.add_output_metadata(recovery_metadata(recovery))
    return len(recovery.jobs)


@dg.op(
    ins={"recovered": dg.In(dg.Nothing)},
    out=dg.Out(Lease, is_required=False, io_manager_key="mem_io_manager"),
    description="Take due jobs for this run; without any, the run ends here.",
)
def lease_batch(
    context: dg.OpExecutionContext,
    config: LeaseConfig,
    tools: dg.ResourceParam[Tools],
) -> Iterator[dg.Output[Lease]]:
    leased = lease.lease_batch(tools, owner=context.run_id, limit=config.batch_size)
    if leased.jobs:
        yield dg.Output(leased, metadata=lease_metadata(leased))
    elif leased.refusal is not None:
        context.log.warning(lease_metadata(leased)["state"])
    else:
        context.log.info(lease_metadata(leased)["state"])


@dg.op(
    out=IN_MEMORY,
    description="Embed the leased jobs within the shared budget, lease again, give back the rest.",
)
def embed_batch(
    context: dg.OpExecutionContext,
    config: EmbedConfig,
    leased: Lease,
    tools: dg.ResourceParam[Tools],
) -> int:
    pace = Pace(tools.clock, limit=timedelta(seconds=config.drain_seconds))
    tally = drain.drain(tools, owner=leased.owner, first=leased, limit=config.batch_size, pace=pace)
    if tally.critical:
        # A green run would hide that nothing goes on until somebody acts.
        raise dg.Failure(
            f"{tally.critical} The queue is halted: mend it, then resume.",
            metadata=tally_metadata(tally, model=tools.model),
            allow_retries=False,
        )
    context.add_output_metadata(tally_metadata(tally, model=tools.model))
    return tally.completed


@dg.op(
    out=IN_MEMORY,
    retry_policy=PATIENT,
    description="Delete completed and failed jobs past their retention.",
)
def cleanup_ttl(
    context: dg.OpExecutionContext,
    config: CleanupConfig,
    job_store: dg.ResourceParam[JobStore],
    plan: dg.ResourceParam[Plan],
) -> int:
    days = config.older_than_days
    older_than = plan.retention if days is None else timedelta(days=days)
    report = cleanup.cleanup_ttl(job_store, older_than=older_than)
    context.add_output_metadata(cleanup_metadata(report, older_than))
    return report.jobs


@dg.op(
    out=IN_MEMORY,
    retry_policy=PATIENT,
    description="Queue entities whose vector is missing or spoilt.",
)
def discover_missing_embeddings(
    context: dg.OpExecutionContext,
    config: DiscoverConfig,
    tools: dg.ResourceParam[Tools],
) -> int:
    bounds = discover.Bounds(most_jobs=config.most_jobs, most_read=config.most_read)
    report = discover.discover(tools, bounds=bounds)
    context.add_output_metadata(discovery_metadata(report))
    return report.new_jobs
