"""The asset checks as Dagster runs them: on demand, and inside `observe_job`."""

from collections.abc import Iterator

import dagster as dg

from embed_pipeline.defs.embed.failed_runs import failed_in_a_row, latest_ended_runs
from embed_pipeline.defs.observe.outcomes import (
    CHECKS,
    COVERAGE,
    AssetCheckOutcome,
    CheckConfig,
    check_coverage,
    check_failed_jobs,
    check_health,
    check_stuck,
    unreachable,
)
from embed_pipeline.defs.op import LANE
from embed_pipeline.errors import EmbedPipelineError
from embed_pipeline.usecases.insight.coverage import QueueState, read_queue_state
from embed_pipeline.worker.context import Services


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
    selected = [check for check in CHECKS if check.key in context.selected_asset_check_keys]
    try:
        state = read_queue_state(services.jobs, model=services.model)
    except EmbedPipelineError as error:
        yield from (unreachable(check, "queue", error).result() for check in selected)
        return
    outcomes = queue_outcomes(state, config, context.instance)
    yield from (outcome.result() for outcome in outcomes if outcome.check in selected)
    if COVERAGE in selected:
        yield _coverage_outcome(state, config, services).result()


def _tag_with_lane(context: dg.AssetCheckExecutionContext) -> None:
    """A run that the UI starts for these checks has no lane, by which old runs are pruned.

    A run that also does other work belongs to another pipeline and is left alone.
    """
    run = context.run
    if not run.asset_selection and run.asset_check_selection == context.selected_asset_check_keys:
        context.instance.add_run_tags(run.run_id, {LANE: "observation"})


def queue_outcomes(
    state: QueueState, config: CheckConfig, instance: dg.DagsterInstance
) -> list[AssetCheckOutcome]:
    failed_runs = [run.run_id for run in failed_in_a_row(latest_ended_runs(instance))]
    return [
        check_stuck(state, config),
        check_health(state, failed_runs=failed_runs),
        check_failed_jobs(state),
    ]


def _coverage_outcome(
    state: QueueState, config: CheckConfig, services: Services
) -> AssetCheckOutcome:
    try:
        coverage = services.graph.coverage(model=services.model)
    except EmbedPipelineError as error:
        return unreachable(COVERAGE, "graph", error)
    return check_coverage(coverage, state, config)
