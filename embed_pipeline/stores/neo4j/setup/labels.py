"""The first labels: every entity is walked once, as an audit does it.

Once for each mapping: of a graph of other programs, of an earlier version, or of a new mapping.
"""

from __future__ import annotations

from functools import partial

from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.embedding import FIRST_PROPERTY, embedded_label
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.errors import SchemaMissing
from embed_pipeline.stores.config import OnProgress
from embed_pipeline.stores.graph.discovery import START
from embed_pipeline.stores.graph.entity_store import GraphEntityStore
from embed_pipeline.stores.neo4j.driver.database import Neo4jDatabase, Tx
from embed_pipeline.stores.neo4j.graph.backend import Neo4jGraph
from embed_pipeline.stores.neo4j.graph.mapping import EXCLUDED, NOTHING, QUEUED, quoted
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
        if database.read(partial(_has_nodes, label)):
            raise SchemaMissing(
                f"The graph has nodes labelled {label} that this program did not make, and would"
                " use that label itself: rename it first."
            )


def label_entities(
    database: Neo4jDatabase, mapping: Collection, *, on_progress: OnProgress
) -> None:
    """Page by page, and from where an interrupted call stopped; nothing is embedded again."""
    store = _store(database, mapping)
    cursor = f"{CURSOR}: {mapping.label}.{mapping.key}"
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


def _has_nodes(label: str, tx: Tx) -> bool:
    return bool(tx.one(HAS_NODES.format(label=quoted(label)))["found"])


def _store(database: Neo4jDatabase, mapping: Collection) -> GraphEntityStore:
    return GraphEntityStore(Neo4jGraph(database, mapping=mapping))
