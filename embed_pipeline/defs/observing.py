"""Ops that write numbers on the assets: the look of every five minutes, and the day's report."""

from datetime import timedelta

import dagster as dg
from pydantic import Field

from embed_pipeline.defs.assets import (
    EMBEDDING_QUEUE,
    EMBEDDING_REPORT,
    ENTITY_EMBEDDINGS,
    NOTHING_YET,
    coverage_figures,
    last_totals,
    queue_figures,
)
from embed_pipeline.defs.checks import judge_queue
from embed_pipeline.defs.findings import (
    COVERAGE,
    HEALTH,
    CheckConfig,
    Finding,
    judge_coverage,
    unreachable,
)
from embed_pipeline.defs.metadata import Metadata, Stopwatch
from embed_pipeline.defs.op import PATIENT, pipeline_op
from embed_pipeline.domain.embedding import Coverage
from embed_pipeline.errors import EmbedPipelineError
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.usecases.insight.coverage import (
    Progress,
    QueueState,
    progress_between,
    read_queue_state,
)
from embed_pipeline.worker.context import Services


class ReportConfig(dg.Config):
    hours: int = Field(default=24, ge=1, le=24 * 31, description="How far the report looks back.")


@pipeline_op("Count exactly, write the numbers on the assets and judge the checks.")
def observe(
    context: dg.OpExecutionContext, config: CheckConfig, services: dg.ResourceParam[Services]
) -> int:
    """Returns how many checks are red; a red check is no failed run."""
    watch = Stopwatch()
    state = _queue_or_red(context, services)
    progress = _progress(context.instance, EMBEDDING_QUEUE, state)
    figures = queue_figures(state, progress, model=services.model)
    context.log_event(dg.AssetObservation(EMBEDDING_QUEUE, metadata=figures))
    findings = judge_queue(state, config, context.instance)
    _tell(context, findings)
    coverage = _coverage_or_red(context, services)
    _write_coverage(context, coverage, state, model=services.model)
    findings.append(judge_coverage(coverage, state, config))
    _tell(context, findings[-1:])
    red = [finding for finding in findings if not finding.passed]
    told = {finding.check: finding.message for finding in red}
    context.add_output_metadata(figures | watch.speed(coverage.entities) | told)
    return len(red)


@pipeline_op(
    "Throughput per hour, latency and error patterns of the last day, as tables.",
    retry_policy=PATIENT,
)
def daily_report(
    context: dg.OpExecutionContext, config: ReportConfig, job_store: dg.ResourceParam[JobStore]
) -> int:
    # Here and not above: pandas takes a second to load, which every run would pay.
    from embed_pipeline.usecases.insight.daily_report import report_since

    watch = Stopwatch()
    since = job_store.now() - timedelta(hours=config.hours)
    report = report_since(job_store.history, since=since)
    tables: Metadata = {name: dg.MetadataValue.md(text) for name, text in report.tables().items()}
    metadata = report.figures() | tables
    context.log_event(dg.AssetMaterialization(EMBEDDING_REPORT, metadata=metadata))
    context.add_output_metadata(metadata | watch.speed(report.ended))
    return report.ended


def _queue_or_red(context: dg.OpExecutionContext, services: Services) -> QueueState:
    try:
        return read_queue_state(services.jobs, model=services.model)
    except EmbedPipelineError as error:
        _tell(context, [unreachable(HEALTH, "queue", error)])
        raise


def _coverage_or_red(context: dg.OpExecutionContext, services: Services) -> Coverage:
    try:
        return services.graph.coverage(model=services.model)
    except EmbedPipelineError as error:
        _tell(context, [unreachable(COVERAGE, "graph", error)])
        raise


def _write_coverage(
    context: dg.OpExecutionContext, coverage: Coverage, state: QueueState, *, model: str
) -> None:
    """Materialized only where vectors may have changed, so that what depends on it can follow.

    That is since its own last event: the look before may have found the queue but not the graph.
    """
    progress = _progress(context.instance, ENTITY_EMBEDDINGS, state)
    kind = dg.AssetMaterialization if progress.completed else dg.AssetObservation
    figures = coverage_figures(coverage, state, progress, model=model)
    context.log_event(kind(ENTITY_EMBEDDINGS, metadata=figures))


def _progress(instance: dg.DagsterInstance, asset: dg.AssetKey, state: QueueState) -> Progress:
    last = last_totals(instance, asset)
    if last is None:
        return NOTHING_YET
    totals, at = last
    return progress_between(totals, state.totals, elapsed=state.at - at)


def _tell(context: dg.OpExecutionContext, findings: list[Finding]) -> None:
    for finding in findings:
        context.log_event(finding.evaluation())  # type: ignore[arg-type]  # its type forgets checks
        if not finding.passed:
            context.log.warning(f"{finding.check}: {finding.message}")
