"""The production backend: a Neo4j database for the queue, another one for the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace

from embed_pipeline.domain.check import CheckResult, Condition
from embed_pipeline.domain.collection import Collection, Registered, is_environment
from embed_pipeline.domain.embedding import ModelRecord
from embed_pipeline.ports.clock import SystemClock
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline.ports.graph_survey import GraphSurvey
from embed_pipeline.stores.config import (
    InitOptions,
    Location,
    Server,
    StoreConfig,
    Uninstalled,
    UninstallOptions,
)
from embed_pipeline.stores.graph.collections import CollectionsEntityStore
from embed_pipeline.stores.graph.entity_store import GraphEntityStore
from embed_pipeline.stores.graph.registry import save_registry
from embed_pipeline.stores.neo4j.driver.database import (
    CONNECT_TIMEOUT,
    RETRY_TIME,
    SHORT_TIMEOUT,
    Neo4jDatabase,
)
from embed_pipeline.stores.neo4j.graph.backend import Neo4jGraph
from embed_pipeline.stores.neo4j.queue.adoption import sentences_on_jobs_left
from embed_pipeline.stores.neo4j.queue.backend import Neo4jQueue
from embed_pipeline.stores.neo4j.queue.job_store import Neo4jJobStore
from embed_pipeline.stores.neo4j.setup import schema, survey, trigger, uninstall
from embed_pipeline.stores.neo4j.setup.doctor import diagnose_database
from embed_pipeline.stores.neo4j.setup.labels import (
    confirm_collections,
    refuse_foreign_labels,
    registered_in_graph,
)
from embed_pipeline.stores.neo4j.setup.vector_index import VectorIndexSetup
from embed_pipeline.stores.queue.job_store import OpenQueue


def open_queue(config: StoreConfig) -> OpenQueue:
    database = _database(config.queue, config, check=schema.confirm_queue)
    policy = config.policy
    queue = Neo4jQueue(database, clock=config.clock, max_attempts=policy.max_attempts)
    return OpenQueue(Neo4jJobStore(queue, policy=policy))


def open_graph(config: StoreConfig) -> EntityStore:
    collections = config.collections
    check = _on_graph(schema.confirm_graph, config)
    database = _database(config.graph, config, check=check)
    if is_environment(collections):
        return GraphEntityStore(Neo4jGraph(database, mapping=collections[0]))

    def open_stores() -> list[GraphEntityStore]:
        found = confirm_collections(database, collections)
        return [GraphEntityStore(Neo4jGraph(database, mapping=one)) for one in found]

    return CollectionsEntityStore(open_stores)


def _on_graph(check: Callable[..., None], config: StoreConfig) -> Callable[[Neo4jDatabase], None]:
    def check_both(database: Neo4jDatabase) -> None:
        check(database, *config.collections)
        confirm_collections(database, config.collections)

    return check_both


def locate_queue(config: StoreConfig) -> Location:
    with closing(_database(config.queue, config)) as database:
        return schema.locate(database, "queue")


def locate_graph(config: StoreConfig) -> Location:
    with closing(_database(config.graph, config)) as database:
        location = schema.locate(database, "graph")
        refuse_foreign_labels(database)
        return location


def initialise_queue(config: StoreConfig) -> list[str]:
    """Constraints and indexes, where they are missing; jobs of another program are adopted."""
    with closing(_database(config.queue, config)) as database:
        schema.refuse_entities(database, *config.collections)
        adopted = schema.prepare_queue(database, max_attempts=config.policy.max_attempts)
        left = sentences_on_jobs_left(database)
    sentences = [f"The queue is ready in the database {database.database} at {database.uri}."]
    if adopted:
        sentences.append(f"{adopted} jobs of another program were adopted.")
    return sentences + left


def initialise_graph(config: StoreConfig, options: InitOptions) -> list[str]:
    """Constraints and indexes, where they are missing; entities are not touched."""
    with closing(_database(config.graph, config)) as database:
        schema.prepare_graph(database, *config.collections, on_progress=options.on_progress)
        sentences = [f"The graph is ready in the database {database.database} at {database.uri}."]
        first = confirm_collections(database, config.collections)[0]
        indexes = VectorIndexSetup(database, first)
        for record in _models(database, first):
            sentences += indexes.prepare(record, options)
    return sentences


def uninstall_graph(config: StoreConfig, options: UninstallOptions) -> Uninstalled:
    """By the graph's registry: the settings may describe other collections by now."""
    assert config.graph is not None, "the settings refuse Neo4j without a server"
    with (
        closing(_database(config.graph, config)) as graph,
        closing(_database(replace(config.graph, database="system"), config)) as system,
    ):
        found = uninstall.registered(graph, config.collections)
        for one in found:
            if not options.dry_run and trigger.installed_trigger(graph, one):
                trigger.drop_trigger(graph, system, one)
        return uninstall.uninstall_graph(graph, _models(graph, found[0]), found, options)


def registered_collections(config: StoreConfig) -> tuple[Registered, ...]:
    with closing(_database(config.graph, config)) as database:
        return registered_in_graph(database)


def save_collections(config: StoreConfig, registered: Sequence[Registered]) -> None:
    with closing(_database(config.graph, config)) as database:
        save_registry(GraphEntityStore(Neo4jGraph(database, mapping=Collection())), registered)


def set_trigger(config: StoreConfig, *, install: bool) -> str:
    """APOC keeps triggers in the database `system` of the graph's server."""
    assert config.graph is not None, "the settings refuse Neo4j without a server"
    with (
        closing(_database(config.graph, config)) as graph,
        closing(_database(replace(config.graph, database="system"), config)) as system,
    ):
        found = confirm_collections(graph, config.collections)
        models = _models(graph, found[0])
        return " ".join(
            trigger.install_trigger(graph, system, one, models)
            if install
            else trigger.drop_trigger(graph, system, one)
            for one in found
        )


def survey_graph(config: StoreConfig) -> GraphSurvey:
    with closing(_database(config.graph, config)) as database:
        return survey.survey(database)


def give_keys(config: StoreConfig, label: str) -> int:
    with closing(_database(config.graph, config)) as database:
        return survey.give_keys(database, label)


def _models(database: Neo4jDatabase, collection: Collection) -> tuple[ModelRecord, ...]:
    return Neo4jGraph(database, mapping=collection).read(lambda tx: tx.models())


def diagnose_queue(config: StoreConfig) -> list[CheckResult]:
    return _diagnose("queue", config.queue, config, schema.check_queue)


def diagnose_graph(config: StoreConfig) -> list[CheckResult]:
    found = _diagnose("graph", config.graph, config, _on_graph(schema.check_graph, config))
    if all(check.condition is not Condition.BROKEN for check in found):
        with closing(_database(config.graph, config)) as graph:
            collections = confirm_collections(graph, config.collections)
            models = _models(graph, collections[0])
            found += VectorIndexSetup(graph, collections[0]).diagnose(models)
            found += [trigger.check_trigger(graph, one, models) for one in collections]
    return found


def _diagnose(
    role: str,
    server: Server | None,
    config: StoreConfig,
    check_schema: Callable[[Neo4jDatabase], None],
) -> list[CheckResult]:
    clock = config.clock or SystemClock()
    with closing(_database(server, config)) as database:
        return diagnose_database(role, database, check_schema=check_schema, now=clock.now)


def _database(
    server: Server | None,
    config: StoreConfig,
    *,
    check: Callable[[Neo4jDatabase], None] | None = None,
) -> Neo4jDatabase:
    assert server is not None, "the settings refuse Neo4j without a server"
    return Neo4jDatabase(
        server.uri,
        user=server.user,
        password=server.password,
        database=server.database,
        clock=config.clock,
        connect_timeout=SHORT_TIMEOUT if config.fail_fast else CONNECT_TIMEOUT,
        retry_time=SHORT_TIMEOUT if config.fail_fast else RETRY_TIME,
        check=check,
    )
