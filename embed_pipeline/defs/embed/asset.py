"""`entity_embeddings`: materialized from its page, it discovers and embeds what is missing."""

import dagster as dg

from embed_pipeline.defs.assets import FRESH, Upstream, read_embeddings
from embed_pipeline.defs.embed.jobs import embed_metadata, failure_if_halted
from embed_pipeline.defs.op import concise_failures
from embed_pipeline.defs.pipeline import ENTITY_EMBEDDINGS, Pipeline, tag_own_run
from embed_pipeline.usecases.entities.discover import Bounds, discover
from embed_pipeline.usecases.entities.refill import check_refill
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.recover import recover_before_work
from embed_pipeline.worker.report import RunReport
from embed_pipeline.worker.run import drain
from embed_pipeline.worker.stop import Deadline


def entity_embeddings_of(pipeline: Pipeline, deps: Upstream) -> dg.AssetsDefinition:
    names, settings = pipeline.names, pipeline.settings
    services = names("services")

    @dg.asset(
        key=names.asset(ENTITY_EMBEDDINGS),
        deps=deps,
        description="The vectors of the graph's entities: what is embedded, missing and stale."
        f" `{names('embed_queue_sensor')}` keeps them complete by itself, and"
        f" `{names('observe_job')}` writes the figures. Materialize it to find and embed at once"
        " what is missing, for at most EMBED_RUN_SECONDS.",
        group_name=names("embeddings"),
        kinds={settings.stores.graph.value, settings.provider.name.value},
        metadata={"model": settings.provider.model, "provider": settings.provider.name.value},
        freshness_policy=FRESH,
        required_resource_keys={services},
    )
    def entity_embeddings(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
        with concise_failures("entity_embeddings"):
            return _materialize(context, getattr(context.resources, services), pipeline)

    return entity_embeddings


def _materialize(
    context: dg.AssetExecutionContext, services: Services, pipeline: Pipeline
) -> dg.MaterializeResult[None]:
    names = pipeline.names
    tag_own_run(context, names, lane="embed", max_runtime=pipeline.embed_runtime)
    if pipeline.settings.queue.recovery_interval is not None:
        recover_before_work(services.jobs)
    report = _discover_and_embed(services, owner=context.run.run_id)
    metadata = embed_metadata(report, model=services.model)
    if failure := failure_if_halted(services, report, metadata, names):
        raise failure
    return dg.MaterializeResult(
        metadata=metadata | read_embeddings(services, context.instance, names).figures()
    )


def _discover_and_embed(services: Services, *, owner: str) -> RunReport:
    deadline = Deadline(services.clock, limit=services.run_limits.drain_for)
    refill = check_refill(services)
    if refill.reason is None:
        most = refill.most_jobs
        discover(
            services, bounds=Bounds(most_jobs=most, most_read=10 * most, audit=False), owner=owner
        )
    return drain(services, owner=owner, deadline=deadline)
