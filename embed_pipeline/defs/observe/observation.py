"""Observation: reads both stores, and evaluates the checks, in `observe_job` or on demand."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import dagster as dg

from embed_pipeline.defs.assets import (
    embeddings_event,
    last_event,
    progress_since,
    queue_figures,
    read_embeddings,
)
from embed_pipeline.defs.embed.queue_sensor import failed_in_a_row, latest_ended_runs
from embed_pipeline.defs.maintenance.discovery import IN_A_TICK
from embed_pipeline.defs.observe.checks import (
    CHECKS,
    COVERAGE,
    HEALTH,
    Check,
    CheckConfig,
    addressed,
    check_coverage,
    unreachable,
)
from embed_pipeline.defs.observe.queue_checks import (
    check_failed_jobs,
    check_health,
    check_stuck,
)
from embed_pipeline.defs.op import Stopwatch, pipeline_op
from embed_pipeline.defs.pipeline import EMBEDDING_QUEUE, Names, Pipeline, tag_own_run
from embed_pipeline.errors import EmbedPipelineError
from embed_pipeline.usecases.entities.discover import discover
from embed_pipeline.usecases.entities.refill import check_refill
from embed_pipeline.usecases.insight.coverage import QueueState, read_queue_state
from embed_pipeline.worker.context import Services


@pipeline_op("Count what is embedded and queued, write it on the assets, evaluate the checks.")
def observe(
    context: dg.OpExecutionContext,
    config: CheckConfig,
    services: dg.ResourceParam[Services],
    names: dg.ResourceParam[Names],
) -> int:
    """Returns how many checks failed. A failed check does not fail the run."""
    watch, instance, queue = Stopwatch(), context.instance, names.asset(EMBEDDING_QUEUE)
    _discover_first(services, owner=context.run_id)
    with _failing_check(context, HEALTH, "queue", names):
        state = read_queue_state(services.jobs, model=services.model)
    progress = progress_since(last_event(instance, queue), state)
    figures = queue_figures(state, progress, model=services.model)
    context.log_event(dg.AssetObservation(queue, metadata=figures))
    results = _check_queue(state, config, instance, names)
    _report(context, results)
    with _failing_check(context, COVERAGE, "graph", names):
        read = read_embeddings(services, instance, names, state)
    context.log_event(embeddings_event(read, instance, names))
    results.append(addressed(check_coverage(read, config), names))
    _report(context, results[-1:])
    failed = {str(result.check_name): result.description for result in results if not result.passed}
    context.add_output_metadata(figures | watch.speed(read.coverage.entities) | failed)
    return len(failed)


def _discover_first(services: Services, *, owner: str) -> None:
    """Otherwise what discovery would queue within seconds counts as a gap that nobody closes.

    An error is reported by what is read next.
    """
    with suppress(EmbedPipelineError):
        if check_refill(services).reason is None:
            discover(services, bounds=IN_A_TICK, owner=owner)


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
        if not context.run.asset_selection:  # otherwise the asset has tagged its run
            tag_own_run(context, names, lane="observation")
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
        read = read_embeddings(services, instance, names, state)
    except EmbedPipelineError as error:
        yield addressed(unreachable(COVERAGE, "graph", error), names)
    else:
        yield addressed(check_coverage(read, config), names)


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
