"""`daily_report_job`: the last day in tables, as a materialization of `embedding_report`."""

from datetime import timedelta

import dagster as dg
from pydantic import Field

from embed_pipeline.defs.op import RETRY_TWICE, Metadata, Stopwatch, pipeline_op
from embed_pipeline.defs.pipeline import EMBEDDING_REPORT, Names
from embed_pipeline.ports.job_store import JobStore


class ReportConfig(dg.Config):
    hours: int = Field(
        default=24, ge=1, le=24 * 31, description="How many hours the report covers."
    )


@pipeline_op(
    "The last day in tables: throughput per hour, latency percentiles, error patterns.",
    retry_policy=RETRY_TWICE,
)
def daily_report(
    context: dg.OpExecutionContext,
    config: ReportConfig,
    job_store: dg.ResourceParam[JobStore],
    names: dg.ResourceParam[Names],
) -> int:
    # Imported here because pandas takes a second to load, which every run would pay.
    from embed_pipeline.usecases.insight.daily_report import report_since

    watch = Stopwatch()
    since = job_store.now() - timedelta(hours=config.hours)
    report = report_since(job_store.history, since=since)
    tables: Metadata = {name: dg.MetadataValue.md(text) for name, text in report.tables().items()}
    metadata = report.figures() | tables
    context.log_event(dg.AssetMaterialization(names.asset(EMBEDDING_REPORT), metadata=metadata))
    context.add_output_metadata(metadata | watch.speed(report.ended))
    return report.ended
