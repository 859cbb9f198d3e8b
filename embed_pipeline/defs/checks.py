"""The asset checks: they look at the stores and at the latest runs."""

from collections.abc import Iterator

import dagster as dg

from embed_pipeline.defs.failing import failed_in_a_row, latest_ended
from embed_pipeline.defs.findings import (
    COVERAGE,
    SPECS,
    CheckConfig,
    Finding,
    judge_coverage,
    judge_failed,
    judge_health,
    judge_stuck,
    unreachable,
)
from embed_pipeline.defs.tags import LANE
from embed_pipeline.errors import EmbedPipelineError
from embed_pipeline.usecases.insight.coverage import QueueState, read_queue_state
from embed_pipeline.worker.context import Services


@dg.multi_asset_check(
    name="check_embeddings",
    specs=SPECS,
    can_subset=True,
    description="Looks at the stores now; `observe_job` does the same every five minutes.",
)
def check_embeddings(
    context: dg.AssetCheckExecutionContext,
    config: CheckConfig,
    services: dg.ResourceParam[Services],
) -> Iterator[dg.AssetCheckResult]:
    _take_into_lane(context)
    asked = sorted(key.name for key in context.selected_asset_check_keys)
    try:
        state = read_queue_state(services.jobs, model=services.model)
    except EmbedPipelineError as error:
        yield from (unreachable(check, "queue", error).result() for check in asked)
        return
    findings = judge_queue(state, config, context.instance)
    yield from (finding.result() for finding in findings if finding.check in asked)
    if COVERAGE in asked:
        yield _look_at_coverage(state, config, services).result()


def _take_into_lane(context: dg.AssetCheckExecutionContext) -> None:
    """A run that the UI makes for these checks has no lane, by which old runs are pruned.

    One that does other people's work beside them is not ours.
    """
    run = context.run
    if not run.asset_selection and run.asset_check_selection == context.selected_asset_check_keys:
        context.instance.add_run_tags(run.run_id, {LANE: "observation"})


def judge_queue(
    state: QueueState, config: CheckConfig, instance: dg.DagsterInstance
) -> list[Finding]:
    failed_runs = [run.run_id for run in failed_in_a_row(latest_ended(instance))]
    return [
        judge_stuck(state, config),
        judge_health(state, failed_runs=failed_runs),
        judge_failed(state),
    ]


def _look_at_coverage(state: QueueState, config: CheckConfig, services: Services) -> Finding:
    try:
        coverage = services.graph.coverage(model=services.model)
    except EmbedPipelineError as error:
        return unreachable(COVERAGE, "graph", error)
    return judge_coverage(coverage, state, config)
