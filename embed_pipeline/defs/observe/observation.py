"""`observe_job`: counts exactly, writes the figures on the assets and evaluates the checks."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import dagster as dg

from embed_pipeline.defs.observe.assets import (
    EMBEDDING_QUEUE,
    ENTITY_EMBEDDINGS,
    coverage_figures,
    progress_since_last_event,
    queue_figures,
)
from embed_pipeline.defs.observe.checks import queue_outcomes
from embed_pipeline.defs.observe.outcomes import (
    COVERAGE,
    HEALTH,
    AssetCheckOutcome,
    CheckConfig,
    check_coverage,
    unreachable,
)
from embed_pipeline.defs.op import Stopwatch, pipeline_job, pipeline_op
from embed_pipeline.domain.embedding import Coverage
from embed_pipeline.errors import EmbedPipelineError
from embed_pipeline.usecases.insight.coverage import QueueState, read_queue_state
from embed_pipeline.worker.context import Services


@pipeline_op("Count exactly, write the figures on the assets and evaluate the checks.")
def observe(
    context: dg.OpExecutionContext, config: CheckConfig, services: dg.ResourceParam[Services]
) -> int:
    """Returns how many checks did not pass. Such a check does not fail the run."""
    watch = Stopwatch()
    with _reporting_failure(context, HEALTH, "queue"):
        state = read_queue_state(services.jobs, model=services.model)
    progress = progress_since_last_event(context.instance, EMBEDDING_QUEUE, state)
    figures = queue_figures(state, progress, model=services.model)
    context.log_event(dg.AssetObservation(EMBEDDING_QUEUE, metadata=figures))
    outcomes = queue_outcomes(state, config, context.instance)
    _report(context, outcomes)
    with _reporting_failure(context, COVERAGE, "graph"):
        coverage = services.graph.coverage(model=services.model)
    _write_coverage(context, coverage, state, model=services.model)
    outcomes.append(check_coverage(coverage, state, config))
    _report(context, outcomes[-1:])
    failing = {outcome.check.name: outcome.message for outcome in outcomes if not outcome.passed}
    context.add_output_metadata(figures | watch.speed(coverage.entities) | failing)
    return len(failing)


@pipeline_job(
    "Count exactly what is embedded and queued, write it on the assets, evaluate the checks.",
    lane="observation",
)
def observe_job() -> None:
    observe()


@contextmanager
def _reporting_failure(
    context: dg.OpExecutionContext, check: dg.AssetCheckSpec, store: str
) -> Iterator[None]:
    """A store that cannot be read fails its check, and then the run."""
    try:
        yield
    except EmbedPipelineError as error:
        _report(context, [unreachable(check, store, error)])
        raise


def _write_coverage(
    context: dg.OpExecutionContext, coverage: Coverage, state: QueueState, *, model: str
) -> None:
    """Materialize only if vectors may have changed, so that downstream assets can follow.

    Since the asset's own last event: the previous run may have read the queue but not the graph.
    """
    progress = progress_since_last_event(context.instance, ENTITY_EMBEDDINGS, state)
    event = dg.AssetMaterialization if progress.completed else dg.AssetObservation
    figures = coverage_figures(coverage, state, progress, model=model)
    context.log_event(event(ENTITY_EMBEDDINGS, metadata=figures))


def _report(context: dg.OpExecutionContext, outcomes: Sequence[AssetCheckOutcome]) -> None:
    for outcome in outcomes:
        context.log_event(outcome.evaluation())  # type: ignore[arg-type]  # its type omits checks
        if not outcome.passed:
            context.log.warning(f"{outcome.check.name}: {outcome.message}")
