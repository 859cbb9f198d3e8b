"""Observation: reads both stores, and evaluates the checks, in `observe_job` or on demand."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import dagster as dg

from embed_pipeline.defs.embed.queue_sensor import failed_in_a_row, latest_ended_runs
from embed_pipeline.defs.observe.assets import (
    EMBEDDING_QUEUE,
    ENTITY_EMBEDDINGS,
    coverage_figures,
    progress_since_last_event,
    queue_figures,
)
from embed_pipeline.defs.observe.checks import (
    CHECKS,
    COVERAGE,
    HEALTH,
    CheckConfig,
    check_coverage,
    check_failed_jobs,
    check_health,
    check_stuck,
    unreachable,
)
from embed_pipeline.defs.op import LANE, Stopwatch, job_of, pipeline_op
from embed_pipeline.domain.partition import Coverage
from embed_pipeline.errors import EmbedPipelineError
from embed_pipeline.usecases.insight.coverage import QueueState, quick_coverage, read_queue_state
from embed_pipeline.usecases.insight.forecast import Forecast, read_forecast
from embed_pipeline.worker.context import Services


@pipeline_op("Count what is embedded and queued, write it on the assets, evaluate the checks.")
def observe(
    context: dg.OpExecutionContext, config: CheckConfig, services: dg.ResourceParam[Services]
) -> int:
    """Returns how many checks failed. A failed check does not fail the run."""
    watch = Stopwatch()
    with _failing_check(context, HEALTH, "queue"):
        state = read_queue_state(services.jobs, model=services.model)
    progress = progress_since_last_event(context.instance, EMBEDDING_QUEUE, state)
    figures = queue_figures(state, progress, model=services.model)
    context.log_event(dg.AssetObservation(EMBEDDING_QUEUE, metadata=figures))
    results = _check_queue(state, config, context.instance)
    _report(context, results)
    with _failing_check(context, COVERAGE, "graph"):
        coverage = quick_coverage(services)
        forecast = read_forecast(services, state.status)
    _write_coverage(context, coverage, state, forecast, model=services.model)
    results.append(check_coverage(coverage, state, config))
    _report(context, results[-1:])
    failed = {str(result.check_name): result.description for result in results if not result.passed}
    context.add_output_metadata(figures | watch.speed(coverage.entities) | failed)
    return len(failed)


observe_job = job_of(observe, "observe_job", lane="observation")


@dg.multi_asset_check(
    name="check_embeddings",
    specs=CHECKS,
    can_subset=True,
    description="Reads both stores now; `observe_job` does the same every five minutes.",
)
def check_embeddings(
    context: dg.AssetCheckExecutionContext,
    config: CheckConfig,
    services: dg.ResourceParam[Services],
) -> Iterator[dg.AssetCheckResult]:
    _tag_with_lane(context)
    selected = {check.name for check in CHECKS if check.key in context.selected_asset_check_keys}
    try:
        state = read_queue_state(services.jobs, model=services.model)
    except EmbedPipelineError as error:
        yield from (
            unreachable(check, "queue", error) for check in CHECKS if check.name in selected
        )
        return
    results = _check_queue(state, config, context.instance)
    yield from (result for result in results if result.check_name in selected)
    if COVERAGE.name in selected:
        try:
            coverage = quick_coverage(services)
        except EmbedPipelineError as error:
            yield unreachable(COVERAGE, "graph", error)
        else:
            yield check_coverage(coverage, state, config)


def _tag_with_lane(context: dg.AssetCheckExecutionContext) -> None:
    """A run that the UI starts for these checks has no lane, by which old runs are pruned.

    A run that also does other work belongs to another pipeline and is left alone.
    """
    run = context.run
    if not run.asset_selection and run.asset_check_selection == context.selected_asset_check_keys:
        context.instance.add_run_tags(run.run_id, {LANE: "observation"})


def _check_queue(
    state: QueueState, config: CheckConfig, instance: dg.DagsterInstance
) -> list[dg.AssetCheckResult]:
    failed_runs = [run.run_id for run in failed_in_a_row(latest_ended_runs(instance))]
    return [
        check_stuck(state, config),
        check_health(state, failed_runs=failed_runs),
        check_failed_jobs(state),
    ]


@contextmanager
def _failing_check(
    context: dg.OpExecutionContext, check: dg.AssetCheckSpec, store: str
) -> Iterator[None]:
    """A store that cannot be read fails this check, and then the run."""
    try:
        yield
    except EmbedPipelineError as error:
        _report(context, [unreachable(check, store, error)])
        raise


def _write_coverage(
    context: dg.OpExecutionContext,
    coverage: Coverage,
    state: QueueState,
    forecast: Forecast,
    *,
    model: str,
) -> None:
    """Materialize only if vectors may have changed, so that downstream assets can follow.

    Since the asset's own last event: the previous run may have read the queue but not the graph.
    """
    progress = progress_since_last_event(context.instance, ENTITY_EMBEDDINGS, state)
    event = dg.AssetMaterialization if progress.completed else dg.AssetObservation
    figures = coverage_figures(coverage, state, progress, model=model)
    figures["left"] = forecast.left
    if forecast.eta is not None:
        figures["done in (minutes)"] = round(forecast.eta.total_seconds() / 60, 1)
    context.log_event(event(ENTITY_EMBEDDINGS, metadata=figures))


def _report(context: dg.OpExecutionContext, results: Sequence[dg.AssetCheckResult]) -> None:
    """As events, because an op cannot return results of checks."""
    for result in results:
        evaluation = dg.AssetCheckEvaluation(
            asset_key=dg.AssetKey.from_coercible(result.asset_key or []),
            check_name=str(result.check_name),
            passed=result.passed,
            severity=result.severity,
            description=result.description,
            metadata=result.metadata,
        )
        context.log_event(evaluation)  # type: ignore[arg-type]  # its type omits checks
        if not result.passed:
            context.log.warning(f"{result.check_name}: {result.description}")
