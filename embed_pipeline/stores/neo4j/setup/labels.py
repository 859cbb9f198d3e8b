"""The first labels: every entity is walked once, as an audit does it.

Once for each mapping: of a graph of other programs, of an earlier version, or of a new mapping.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from embed_pipeline.domain.collection import (
    OF_VERSION_0_1,
    Collection,
    Registered,
    accepted,
    register,
)
from embed_pipeline.domain.embedding import FIRST_PROPERTY, embedded_label
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.errors import SchemaMissing
from embed_pipeline.stores.config import OnProgress
from embed_pipeline.stores.graph.discovery import START
from embed_pipeline.stores.graph.entity_store import GraphEntityStore
from embed_pipeline.stores.graph.registry import confirmed, read_registry, save_registry
from embed_pipeline.stores.neo4j.driver.database import Neo4jDatabase, Tx
from embed_pipeline.stores.neo4j.graph.backend import Neo4jGraph
from embed_pipeline.stores.neo4j.graph.names import EXCLUDED, NOTHING, QUEUED, own, quoted
from embed_pipeline.stores.neo4j.setup.cypher import HAS_NODES

PAGE = 5_000
CURSOR = "labels of version 2"
DONE = EntityUid("\x00 done")
"""Where the walk of a mapping ended; no key begins with this character."""

NONE_YET = ""
"""Without a model the walk only tells deleted, empty and keyless nodes from missing ones."""


def refuse_foreign_labels(database: Neo4jDatabase) -> None:
    """Before the first label is written, no node may have one: its program would lose it."""
    if _store(database, Collection()).cursor(CURSOR) is not None:
        return
    for label in (embedded_label(FIRST_PROPERTY), NOTHING, EXCLUDED, QUEUED):
        if database.read(partial(has_nodes, label)):
            raise SchemaMissing(
                f"The graph has nodes labelled {label} that this program did not make, and would"
                " use that label itself: rename it first."
            )


def label_entities(
    database: Neo4jDatabase, mapping: Collection, *, on_progress: OnProgress
) -> None:
    """Page by page, and from where an interrupted call stopped; nothing is embedded again."""
    store = _store(database, mapping)
    cursor = own(f"{CURSOR}: {mapping.label}.{mapping.key}", mapping)
    if store.cursor(cursor) == DONE:
        return
    refuse_foreign_labels(database)
    store.save_cursor(CURSOR, START)
    model = next((record.model for record in store.models()), NONE_YET)
    done, total = 0, store.counts(model=model).entities
    after: EntityUid | None = store.cursor(cursor) or START
    while after is not None:
        page = store.audit_page(model=model, after=after, size=PAGE)
        after, done = page.next_after, done + page.examined
        store.save_cursor(cursor, DONE if after is None else after)
        on_progress("labelling entities", done, total)


def register_collections(
    database: Neo4jDatabase, collections: Sequence[Collection]
) -> tuple[Collection, ...]:
    """New ones are registered behind those that are there; one that has changed is refused."""
    registered = register(collections, registered_in_graph(database))
    found = confirmed(collections, registered, count_embedded=partial(_count_embedded, database))
    save_registry(_store(database, collections[0]), accepted(collections, registered))
    return found


def registered_in_graph(database: Neo4jDatabase) -> tuple[Registered, ...]:
    store = _store(database, Collection())
    known = read_registry(store)
    if known is not None:
        return known
    return (OF_VERSION_0_1,) if store.models() else ()


def confirm_collections(
    database: Neo4jDatabase, collections: Sequence[Collection]
) -> tuple[Collection, ...]:
    """The collections as the graph has registered them."""
    registered = read_registry(_store(database, collections[0]))
    count_embedded = partial(_count_embedded, database)
    return confirmed(collections, registered, count_embedded=count_embedded)


def _count_embedded(database: Neo4jDatabase, collection: Collection) -> int:
    store = _store(database, collection)
    return max((store.counts(model=one.model).embedded for one in store.models()), default=0)


def has_nodes(label: str, tx: Tx) -> bool:
    return bool(tx.one(HAS_NODES.format(label=quoted(label)))["found"])


def _store(database: Neo4jDatabase, mapping: Collection) -> GraphEntityStore:
    return GraphEntityStore(Neo4jGraph(database, mapping=mapping))
