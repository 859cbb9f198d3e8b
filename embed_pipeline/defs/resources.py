"""Resources, opened by `wiring` from the settings, so that no secret enters Dagster's config."""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import dagster as dg

from embed_pipeline import wiring
from embed_pipeline.ports.embedding_provider import EmbeddingProvider
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline.settings import Settings
from embed_pipeline.stores.config import Queue
from embed_pipeline.worker.context import Services

Closeable = EntityStore | EmbeddingProvider

PARTS = {"job_store", "entity_store", "embedding_provider", "rate_limiter", "run_limits"}


def resources_for(settings: Settings) -> dict[str, Any]:
    """Lazy: nothing is connected or loaded before an op uses it.

    Sensors use the stores and the rate limiter too. They poll every few seconds, so there all of
    them fail fast.
    """
    stores, provider = settings.stores, settings.provider
    return {
        "queue": _queue(settings),
        "job_store": _of_queue(
            lambda queue: queue.jobs, f"The queue of embedding jobs, on {stores.queue}."
        ),
        "entity_store": _resource(
            lambda run: wiring.open_entity_store(settings, fail_fast=run is None),
            f"The knowledge graph, on {stores.graph}.",
        ),
        "embedding_provider": _resource(
            lambda _run: wiring.open_embedding_provider(settings),
            f"{provider.name}: {provider.model}.",
        ),
        "rate_limiter": _of_queue(
            lambda queue: wiring.limiter_of(settings, queue), "The rate limit that all runs share."
        ),
        "run_limits": dg.ResourceDefinition.hardcoded_resource(
            wiring.run_limits_of(settings),
            description="The limits of a run: batch size, heartbeat, time limits, retention.",
        ),
        "services": _services(),
        "automatic_recovery": dg.ResourceDefinition.hardcoded_resource(
            settings.queue.recovery_interval is not None,
            description="Whether embed_job recovers stale jobs before it leases.",
        ),
        # A lease is of no use to a later run, so nothing is stored between ops.
        "mem_io_manager": dg.mem_io_manager,
    }


def _queue(settings: Settings) -> dg.ResourceDefinition:
    def opened(context: dg.InitResourceContext) -> Iterator[Queue]:
        in_sensor = context.run is None
        queue = wiring.open_queue(settings, fail_fast=in_sensor)
        with closing(queue.jobs):
            yield queue

    return dg.ResourceDefinition(
        resource_fn=opened, description="The connection that job_store and rate_limiter share."
    )


def _of_queue(part: Callable[[Queue], object], description: str) -> dg.ResourceDefinition:
    return dg.ResourceDefinition(
        resource_fn=lambda context: part(context.resources.queue),
        required_resource_keys={"queue"},
        description=description,
    )


def _resource(
    opener: Callable[[dg.DagsterRun | None], Closeable], description: str
) -> dg.ResourceDefinition:
    """`opener` gets the run, or None in a sensor."""

    def opened(context: dg.InitResourceContext) -> Iterator[Closeable]:
        with closing(opener(context.run)) as resource:
            yield resource

    return dg.ResourceDefinition(resource_fn=opened, description=description)


def _services() -> dg.ResourceDefinition:
    """Made of the other resources, so that replacing one of them replaces it here too."""

    def combined(context: dg.InitResourceContext) -> Services:
        resources = context.resources
        return Services(
            jobs=resources.job_store,
            graph=resources.entity_store,
            provider=resources.embedding_provider,
            limiter=resources.rate_limiter,
            run_limits=resources.run_limits,
        )

    return dg.ResourceDefinition(
        resource_fn=combined,
        required_resource_keys=PARTS,
        description="All the worker needs: queue, graph, provider, rate limiter and run limits.",
    )
