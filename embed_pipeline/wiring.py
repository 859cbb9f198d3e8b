"""From settings to opened ports: the only place that knows which backend and provider is meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace

from embed_pipeline.domain.check import CheckResult
from embed_pipeline.domain.collection import Registered
from embed_pipeline.domain.recovery import QueuePolicy, RecoveryPolicy
from embed_pipeline.domain.window import RateLimit
from embed_pipeline.errors import RequestError
from embed_pipeline.ports.clock import Clock
from embed_pipeline.ports.embedding_provider import EmbeddingProvider
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline.ports.graph_survey import GraphSurvey
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.ports.rate_limiter import RateLimiter
from embed_pipeline.providers import open_provider
from embed_pipeline.settings import IN_PROCESS, ServerSettings, Settings
from embed_pipeline.stores import graph_backend, initialise, queue_backend
from embed_pipeline.stores.config import (
    InitOptions,
    Queue,
    Server,
    StoreConfig,
    Uninstalled,
    UninstallOptions,
)
from embed_pipeline.stores.queue.rate_limiter import Unlimited
from embed_pipeline.worker.context import RunLimits, Services


def open_queue(settings: Settings, *, clock: Clock | None = None, fail_fast: bool = False) -> Queue:
    """`fail_fast` for sensors, which poll every few seconds."""
    config = _store_config(settings, clock, fail_fast=fail_fast)
    return queue_backend(settings.stores.queue).open_queue(config)


def open_job_store(
    settings: Settings, *, clock: Clock | None = None, fail_fast: bool = False
) -> JobStore:
    return open_queue(settings, clock=clock, fail_fast=fail_fast).jobs


def open_entity_store(
    settings: Settings, *, clock: Clock | None = None, fail_fast: bool = False
) -> EntityStore:
    config = _store_config(settings, clock, fail_fast=fail_fast)
    return graph_backend(settings.stores.graph).open_graph(config)


def initialise_stores(settings: Settings, options: InitOptions | None = None) -> list[str]:
    """Create what the stores need; a sentence for each database."""
    stores, options = settings.stores, options or InitOptions()
    config = _store_config(settings, None)
    graph = graph_backend(stores.graph)
    sentences = initialise(queue_backend(stores.queue), graph, config, options)
    if options.trigger is not None:
        sentences.append(graph.set_trigger(config, install=options.trigger))
    return sentences


def survey_graph(settings: Settings) -> GraphSurvey:
    """What other programs keep in the graph; nothing is changed, and no `init` is needed."""
    return graph_backend(settings.stores.graph).survey_graph(_store_config(settings, None))


def give_keys(settings: Settings, label: str) -> int:
    """Give nodes of a label that have no `uid` one; how many."""
    return graph_backend(settings.stores.graph).give_keys(_store_config(settings, None), label)


def uninstall(settings: Settings, options: UninstallOptions | None = None) -> Uninstalled:
    """Remove from the graph what was added to it. The queue is left: it is ours as a whole."""
    options, stores = options or UninstallOptions(), settings.stores
    with closing(open_job_store(settings)) as jobs:
        if owners := sorted(jobs.live_owners()):
            raise RequestError(
                f"Workers hold leases: {', '.join(owners[:5])}. Stop Dagster and other workers, "
                "then uninstall."
            )
    config = _store_config(settings, None)
    removed = graph_backend(stores.graph).uninstall_graph(config, options)
    place = queue_backend(stores.queue).locate_queue(config).place
    note = f"The queue is in {place}: delete it as a whole."
    return replace(removed, notes=(*removed.notes, note))


def registered_collections(settings: Settings) -> tuple[Registered, ...]:
    """What the graph has, whatever the settings describe."""
    config = _store_config(settings, None)
    return graph_backend(settings.stores.graph).registered_collections(config)


def save_collections(settings: Settings, registered: Sequence[Registered]) -> None:
    config = _store_config(settings, None)
    graph_backend(settings.stores.graph).save_collections(config, registered)


def diagnose_stores(settings: Settings) -> list[CheckResult]:
    """What the doctor finds in the databases; nothing is changed."""
    stores = settings.stores
    config = _store_config(settings, None)
    return [
        *queue_backend(stores.queue).diagnose_queue(config),
        *graph_backend(stores.graph).diagnose_graph(config),
    ]


def open_embedding_provider(settings: Settings) -> EmbeddingProvider:
    """Nothing is sent or loaded before the first request."""
    return open_provider(settings.provider)


def limiter_of(settings: Settings, queue: Queue) -> RateLimiter:
    """The budget that all workers share. It is closed with the queue's jobs."""
    limit = rate_limit(settings)
    if limit is None:
        return Unlimited()
    return queue.limiter(provider=settings.provider.name, limit=limit)


def open_services(settings: Settings) -> Services:
    """Jobs and limiter share one opened queue."""
    queue = open_queue(settings)
    return Services(
        jobs=queue.jobs,
        graph=open_entity_store(settings),
        provider=open_embedding_provider(settings),
        limiter=limiter_of(settings, queue),
        run_limits=run_limits_of(settings),
    )


def add_to_counters(settings: Settings, amounts: Mapping[str, int]) -> None:
    """Opens the queue only for this: the reaper, whose counters these are, needs no queue."""
    with closing(open_job_store(settings)) as queue:
        queue.counters.add(amounts)


def run_limits_of(settings: Settings) -> RunLimits:
    queue = settings.queue
    return RunLimits(
        batch_size=queue.batch_size,
        concurrency=settings.provider.concurrency,
        heartbeat_interval=queue.heartbeat_interval,
        drain_for=queue.run_for,
        retention=queue.retention,
        queue_depth=queue.depth,
        audit_for=queue.audit_for,
    )


def rate_limit(settings: Settings) -> RateLimit | None:
    provider = settings.provider
    is_unlimited = provider.max_requests is None and provider.max_tokens is None
    if is_unlimited and provider.name in IN_PROCESS:
        return None
    return RateLimit(
        # A token budget alone does not limit the number of requests. Neither does a provider
        # without any limit, but its 429 pauses all workers, and the limiter stores that pause.
        requests=provider.max_requests or 1_000_000,
        tokens=provider.max_tokens,
        interval=provider.interval,
        allowance=provider.allowance,
    )


def policy_of(settings: Settings) -> QueuePolicy:
    queue = settings.queue
    return QueuePolicy(
        lock_duration=queue.lock_duration,
        heartbeat_interval=queue.heartbeat_interval,
        max_attempts=queue.max_attempts,
        recovery=RecoveryPolicy(max_recoveries=queue.max_recoveries),
    )


def _store_config(
    settings: Settings, clock: Clock | None, *, fail_fast: bool = False
) -> StoreConfig:
    return StoreConfig(
        home=settings.home,
        policy=policy_of(settings),
        collections=settings.collections,
        queue=_server(settings.stores.queue_server),
        graph=_server(settings.stores.graph_server),
        clock=clock,
        fail_fast=fail_fast,
    )


def _server(settings: ServerSettings | None) -> Server | None:
    if settings is None:
        return None
    return Server(
        uri=settings.uri,
        user=settings.user,
        password=settings.password.get_secret_value(),
        database=settings.database,
        schema=settings.schema,
    )
