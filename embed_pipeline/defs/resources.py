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


def resources_for(
    settings: Settings, key: Callable[[str], str] = str
) -> dict[str, dg.ResourceDefinition]:
    """Lazy: nothing is connected or loaded before an op uses it. `key` names each of them.

    Sensors use the stores and the rate limiter too. They poll every few seconds, so there all of
    them fail fast.
    """
    stores, provider = settings.stores, settings.provider
    resources = {
        "queue": _queue(settings),
        "job_store": _of_queue(
            lambda queue: queue.jobs, f"The queue of embedding jobs, on {stores.queue}.", key
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
            lambda queue: wiring.limiter_of(settings, queue),
            "The rate limit that all runs share.",
            key,
        ),
        "run_limits": dg.ResourceDefinition.hardcoded_resource(
            wiring.run_limits_of(settings),
            description="The limits of a run: batch size, heartbeat, time limits, retention.",
        ),
        "services": _services(key),
    }
    return {key(name): resource for name, resource in resources.items()}


def _queue(settings: Settings) -> dg.ResourceDefinition:
    def opened(context: dg.InitResourceContext) -> Iterator[Queue]:
        in_sensor = context.run is None
        queue = wiring.open_queue(settings, fail_fast=in_sensor)
        with closing(queue.jobs):
            yield queue

    return dg.ResourceDefinition(
        resource_fn=opened, description="The connection that job_store and rate_limiter share."
    )


def _of_queue(
    part: Callable[[Queue], object], description: str, key: Callable[[str], str]
) -> dg.ResourceDefinition:
    queue = key("queue")
    return dg.ResourceDefinition(
        resource_fn=lambda context: part(getattr(context.resources, queue)),
        required_resource_keys={queue},
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


def _services(key: Callable[[str], str]) -> dg.ResourceDefinition:
    """Made of the other resources, so that replacing one of them replaces it here too."""

    def combined(context: dg.InitResourceContext) -> Services:
        def part(name: str) -> Any:
            return getattr(context.resources, key(name))

        return Services(
            jobs=part("job_store"),
            graph=part("entity_store"),
            provider=part("embedding_provider"),
            limiter=part("rate_limiter"),
            run_limits=part("run_limits"),
        )

    return dg.ResourceDefinition(
        resource_fn=combined,
        required_resource_keys={key(name) for name in PARTS},
        description="All the worker needs: queue, graph, provider, rate limiter and run limits.",
    )
