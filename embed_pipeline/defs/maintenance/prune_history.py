"""`prune_history_job`: Dagster keeps runs forever; this deletes our old ones with their files."""

from datetime import timedelta
from pathlib import Path

import dagster as dg
from pydantic import Field

from embed_pipeline.defs.op import Stopwatch, pipeline_op
from embed_pipeline.defs.pipeline import LANE, LANES, PIPELINE, Names
from embed_pipeline.defs.polling import ENDED
from embed_pipeline.ports.clock import SystemClock

PAGE = 100


class PruneConfig(dg.Config):
    older_than_days: int = Field(
        default=14, ge=1, description="Delete runs of this pipeline that ended earlier."
    )
    most_runs: int = Field(
        default=20_000, ge=1, description="Delete at most this many; the next night continues."
    )


@pipeline_op(
    "Delete this pipeline's old runs from Dagster's storage, with their events, checks, logs and"
    " files. Runs of other jobs on the same instance are left alone."
)
def prune_history(
    context: dg.OpExecutionContext, config: PruneConfig, names: dg.ResourceParam[Names]
) -> int:
    instance, watch = context.instance, Stopwatch()
    lanes: dict[str, str | list[str]] = {LANE: [names.lane(lane) for lane in LANES]}
    old = dg.RunsFilter(
        tags=lanes,
        statuses=ENDED,
        updated_before=SystemClock().now() - timedelta(days=config.older_than_days),
    )
    deleted, note = 0, {}
    try:
        for run_id in _own_runs(instance, old, names.pipeline, most=config.most_runs):
            _delete(instance, run_id)
            deleted += 1
    except (NotImplementedError, ImportError) as error:
        # Dagster+ keeps history by its own rules; a newer Dagster may have moved a private module.
        note = {"note": f"This Dagster does not let runs delete its history: {error}"}
    context.add_output_metadata(
        {
            "runs deleted": deleted,
            "older than (days)": config.older_than_days,
            "runs kept": instance.get_runs_count(dg.RunsFilter(tags={PIPELINE: names.pipeline})),
        }
        | watch.speed(deleted)
        | note
    )
    return deleted


def _own_runs(
    instance: dg.DagsterInstance, wanted: dg.RunsFilter, pipeline: str, *, most: int
) -> list[str]:
    """Also those without a pipeline's tag, which a version before 0.2 has left."""
    found: list[str] = []
    cursor = None
    while len(found) < most and (page := instance.get_runs(wanted, cursor=cursor, limit=PAGE)):
        found += [run.run_id for run in page if run.tags.get(PIPELINE, pipeline) == pipeline]
        cursor = page[-1].run_id
    return found[:most]


def _delete(instance: dg.DagsterInstance, run_id: str) -> None:
    """The run itself last: after an interruption it is found again the next night."""
    # Private modules of Dagster: one that moves must not fail the code location.
    from dagster._core.storage.event_log.schema import AssetCheckExecutionsTable
    from dagster._core.storage.event_log.sql_event_log import SqlEventLogStorage
    from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage

    instance.compute_log_manager.delete_logs(prefix=[run_id])
    events = instance.event_log_storage
    if isinstance(events, SqlEventLogStorage):
        checks = AssetCheckExecutionsTable
        with events.index_connection() as connection:
            connection.execute(checks.delete().where(checks.c.run_id == run_id))
    instance.delete_run(run_id)
    if isinstance(events, SqliteEventLogStorage):
        # Each run has its own file there, which Dagster empties but does not delete.
        shard = Path(events.path_for_shard(run_id))
        for path in shard.parent.glob(f"{shard.name}*"):
            path.unlink(missing_ok=True)
