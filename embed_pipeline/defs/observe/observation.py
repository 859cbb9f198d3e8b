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
    Check,
    CheckConfig,
    addressed,
    check_coverage,
    check_failed_jobs,
    check_health,
    check_stuck,
    unreachable,
)
from embed_pipeline.defs.op import Stopwatch, pipeline_op
from embed_pipeline.defs.pipeline import Names, Pipeline
from embed_pipeline.domain.partition import Coverage
from embed_pipeline.errors import EmbedPipelineError
from embed_pipeline.usecases.insight.coverage import QueueState, quick_coverage, read_queue_state
from embed_pipeline.usecases.insight.forecast import Forecast, read_forecast
from embed_pipeline.worker.context import Services


@pipeline_op("Count what is embedded and queued, write it on the assets, evaluate the checks.")
def observe(
    context: dg.OpExecutionContext,
    config: CheckConfig,
    services: dg.ResourceParam[Services],
    names: dg.ResourceParam[Names],
) -> int:
    """Returns how many checks failed. A failed check does not fail the run."""
    watch, queue = Stopwatch(), names.asset(EMBEDDING_QUEUE)
    with _failing_check(context, HEALTH, "queue", names):
        state = read_queue_state(services.jobs, model=services.model)
    progress = progress_since_last_event(context.instance, queue, state)
    figures = queue_figures(state, progress, model=services.model)
    context.log_event(dg.AssetObservation(queue, metadata=figures))
    results = _check_queue(state, config, context.instance, names)
    _report(context, results)
    with _failing_check(context, COVERAGE, "graph", names):
        coverage = quick_coverage(services)
        forecast = read_forecast(services, state.status)
    _write_coverage(context, coverage, state, forecast, names, model=services.model)
    results.append(addressed(check_coverage(coverage, state, config), names))
    _report(context, results[-1:])
    failed = {str(result.check_name): result.description for result in results if not result.passed}
    context.add_output_metadata(figures | watch.speed(coverage.entities) | failed)
    return len(failed)


def check_embeddings_of(pipeline: Pipeline) -> dg.AssetChecksDefinition:
    names, services = pipeline.names, pipeline.names("services")

    @dg.multi_asset_check(
        name=names("check_embeddings"),
        specs=[check.spec(names) for check in CHECKS],
        can_subset=True,
        required_resource_keys={services},
        description=f"Reads both stores now; `{names('observe_job')}` does the same every five"
        " minutes.",
    )
    def check_embeddings(
        context: dg.AssetCheckExecutionContext, config: CheckConfig
    ) -> Iterator[dg.AssetCheckResult]:
        _tag_run(context, names)
        selected = {key.name for key in context.selected_asset_check_keys}
        results = _check_all(getattr(context.resources, services), config, context.instance, names)
        yield from (result for result in results if result.check_name in selected)

    return check_embeddings


def _check_all(
    services: Services, config: CheckConfig, instance: dg.DagsterInstance, names: Names
) -> Iterator[dg.AssetCheckResult]:
    try:
        state = read_queue_state(services.jobs, model=services.model)
    except EmbedPipelineError as error:
        yield from (addressed(unreachable(check, "queue", error), names) for check in CHECKS)
        return
    yield from _check_queue(state, config, instance, names)
    try:
        coverage = quick_coverage(services)
    except EmbedPipelineError as error:
        yield addressed(unreachable(COVERAGE, "graph", error), names)
    else:
        yield addressed(check_coverage(coverage, state, config), names)


def _tag_run(context: dg.AssetCheckExecutionContext, names: Names) -> None:
    """A run that the UI starts for these checks lacks the tags by which old runs are pruned.

    A run that also does other work belongs to another pipeline and is left alone.
    """
    run = context.run
    if not run.asset_selection and run.asset_check_selection == context.selected_asset_check_keys:
        context.instance.add_run_tags(run.run_id, names.tags("observation"))


def _check_queue(
    state: QueueState, config: CheckConfig, instance: dg.DagsterInstance, names: Names
) -> list[dg.AssetCheckResult]:
    ended = latest_ended_runs(instance, names("embed_job"), names.pipeline)
    failed_runs = [run.run_id for run in failed_in_a_row(ended)]
    results = (
        check_stuck(state, config),
        check_health(state, failed_runs=failed_runs),
        check_failed_jobs(state),
    )
    return [addressed(result, names) for result in results]


@contextmanager
def _failing_check(
    context: dg.OpExecutionContext, check: Check, store: str, names: Names
) -> Iterator[None]:
    """A store that cannot be read fails this check, and then the run."""
    try:
        yield
    except EmbedPipelineError as error:
        _report(context, [addressed(unreachable(check, store, error), names)])
        raise


def _write_coverage(
    context: dg.OpExecutionContext,
    coverage: Coverage,
    state: QueueState,
    forecast: Forecast,
    names: Names,
    *,
    model: str,
) -> None:
    """Materialize only if vectors may have changed, so that downstream assets can follow.

    Since the asset's own last event: the previous run may have read the queue but not the graph.
    """
    asset = names.asset(ENTITY_EMBEDDINGS)
    progress = progress_since_last_event(context.instance, asset, state)
    event = dg.AssetMaterialization if progress.completed else dg.AssetObservation
    figures = coverage_figures(coverage, state, progress, model=model)
    figures["left"] = forecast.left
    if forecast.eta is not None:
        figures["done in (minutes)"] = round(forecast.eta.total_seconds() / 60, 1)
    context.log_event(event(asset, metadata=figures))


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
