"""The op `recover_stale` and the job that runs it alone."""

import dagster as dg
from pydantic import Field

from embed_pipeline.defs.op import Metadata, Stopwatch, pipeline_job, pipeline_op, table
from embed_pipeline.domain.recovery import Recovery
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.worker import recover


class RecoverConfig(dg.Config):
    strict: bool = Field(
        default=False,
        description="For a run that only recovers: it fails when recovery fails, and recovers even "
        "if EMBED_JOB_RECOVERY_INTERVAL is 0. Otherwise a failure is logged and the run continues.",
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
    context.add_output_metadata(_metadata_of(recovery) | watch.speed(len(recovery.jobs)))
    return len(recovery.jobs)


@pipeline_job(
    "Return the jobs of crashed workers to pending.",
    lane="recovery",
    max_runtime=120,
    config=dg.RunConfig(ops={"recover_stale": RecoverConfig(strict=True)}),
)
def recover_stale_job() -> None:
    recover_stale()


def _metadata_of(recovery: Recovery) -> Metadata:
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
