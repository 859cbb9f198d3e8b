"""Resources: opened by wiring from the settings, so that no secret ever enters Dagster's config."""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import dagster as dg

from embed_pipeline import wiring
from embed_pipeline.ports.embedding_provider import EmbeddingProvider
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.ports.rate_limiter import RateLimiter
from embed_pipeline.settings import Settings
from embed_pipeline.worker.context import RunLimits, Services

Closeable = JobStore | EntityStore | EmbeddingProvider | RateLimiter


def resources_for(settings: Settings) -> dict[str, Any]:
    """Lazy: nothing is connected or loaded before an op uses it."""
    stores, provider = settings.stores, settings.provider
    return {
        "job_store": _looked_at(
            wiring.open_job_store, settings, f"The queue of embedding jobs, on {stores.queue}."
        ),
        "entity_store": _resource(
            wiring.open_entity_store, settings, f"The knowledge graph, on {stores.graph}."
        ),
        "embedding_provider": _resource(
            wiring.open_embedding_provider, settings, f"{provider.name}: {provider.model}."
        ),
        "rate_limiter": _looked_at(
            wiring.open_rate_limiter, settings, "The budget that all runs share."
        ),
        "run_limits": _run_limits(settings),
        "services": _services(),
        "automatic_recovery": dg.ResourceDefinition.hardcoded_resource(
            settings.queue.recovery_interval is not None,
            description="Whether runs recover stale jobs by themselves before they lease.",
        ),
        # Leases are of no use to a later run, so nothing is written between ops.
        "mem_io_manager": dg.mem_io_manager,
    }


def _resource(
    opener: Callable[[Settings], Closeable], settings: Settings, description: str
) -> dg.ResourceDefinition:
    def opened(_context: dg.InitResourceContext) -> Iterator[Closeable]:
        with closing(opener(settings)) as thing:
            yield thing

    return dg.ResourceDefinition(resource_fn=opened, description=description)


def _looked_at(
    opener: Callable[..., Closeable], settings: Settings, description: str
) -> dg.ResourceDefinition:
    """Sensors use it too: they look again in seconds, so they wait shortly for a server."""

    def opened(context: dg.InitResourceContext) -> Iterator[Closeable]:
        with closing(opener(settings, fail_fast=context.run is None)) as thing:
            yield thing

    return dg.ResourceDefinition(resource_fn=opened, description=description)


def _run_limits(settings: Settings) -> dg.ResourceDefinition:
    def made(_context: dg.InitResourceContext) -> RunLimits:
        return wiring.run_limits_of(settings)

    return dg.ResourceDefinition(
        resource_fn=made, description="Batch size, heartbeat, retention and time limits."
    )


def _services() -> dg.ResourceDefinition:
    """Of the other resources, so that replacing one of them replaces it here too."""

    def gathered(context: dg.InitResourceContext) -> Services:
        given = context.resources
        return Services(
            jobs=given.job_store,
            graph=given.entity_store,
            provider=given.embedding_provider,
            limiter=given.rate_limiter,
            run_limits=given.run_limits,
        )

    return dg.ResourceDefinition(
        resource_fn=gathered,
        required_resource_keys={
            "job_store",
            "entity_store",
            "embedding_provider",
            "rate_limiter",
            "run_limits",
        },
        description="All of them in one hand: what the worker works with.",
    )
