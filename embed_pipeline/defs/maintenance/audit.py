"""`audit_job` and its schedule: a round of the audit, which finds changes of other programs."""

from dataclasses import asdict
from datetime import timedelta

import dagster as dg
from pydantic import Field

from embed_pipeline.defs.op import RETRY_TWICE, Metadata, Stopwatch, pipeline_op
from embed_pipeline.usecases.entities.audit import AuditReport, audit
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.stop import Deadline


class AuditConfig(dg.Config):
    seconds: int | None = Field(
        default=None, ge=1, description="Stop after this time; by default EMBED_AUDIT_SECONDS."
    )


@pipeline_op(
    "Compare entities with their vectors and labels, set labels right, and mark what has changed."
    " Continues where the last round stopped.",
    retry_policy=RETRY_TWICE,
)
def audit_embeddings(
    context: dg.OpExecutionContext, config: AuditConfig, services: dg.ResourceParam[Services]
) -> int:
    given = config.seconds
    limit = services.run_limits.audit_for if given is None else timedelta(seconds=given)
    watch = Stopwatch()
    report = audit(services, deadline=Deadline(services.clock, limit=limit), owner=context.run_id)
    context.add_output_metadata(_metadata(report) | watch.speed(report.counts.examined))
    return report.counts.marked


def _metadata(report: AuditReport) -> Metadata:
    counts = {name.replace("_", " "): count for name, count in asdict(report.counts).items()}
    metadata: Metadata = {"examined": report.counts.examined, **counts}
    if report.busy:
        metadata["state"] = f"another audit is at work: {report.busy}"
    else:
        metadata["state"] = "complete" if report.complete else "the next round continues"
    last = report.record.last
    if last is not None and last.ended_at is not None and last.duration is not None:
        metadata["last complete audit"] = last.ended_at.isoformat(timespec="seconds")
        metadata["last complete audit took (seconds)"] = last.duration.total_seconds()
    return metadata
