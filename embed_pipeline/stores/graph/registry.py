"""The collections that a graph has, as it registers them: a small document among its cursors."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict

from embed_pipeline.domain.collection import (
    Collection,
    Registered,
    changed,
    is_environment,
    placed,
)
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.errors import CollectionMismatch
from embed_pipeline.stores.graph.entity_store import GraphEntityStore

CURSOR = "collections"


def read_registry(store: GraphEntityStore) -> tuple[Registered, ...] | None:
    """None if the graph has registered none yet."""
    return registered_in(store.cursor(CURSOR))


def registered_in(document: str | None) -> tuple[Registered, ...] | None:
    return None if document is None else tuple(Registered(**one) for one in json.loads(document))


def save_registry(store: GraphEntityStore, registered: Sequence[Registered]) -> None:
    store.save_cursor(CURSOR, EntityUid(document_of(registered)))


def document_of(registered: Sequence[Registered]) -> str:
    return json.dumps([asdict(one) for one in registered])


def confirmed(
    collections: Sequence[Collection],
    registered: Sequence[Registered] | None,
    *,
    count_embedded: Callable[[Collection], int],
) -> tuple[Collection, ...]:
    """The collections with their standing; refused if the graph has other ones.

    One that has changed is refused if that costs anything. A graph that has registered none is one
    of the environment's collection.
    """
    if registered is None and is_environment(collections):
        return tuple(collections)
    found = placed(collections, registered or ())
    for name in changed(collections, registered or ()):
        if texts := next(count_embedded(one) for one in found if one.name == name):
            raise CollectionMismatch(
                f"The collection {name} was registered with another label, key, text or filter. "
                f"With what the settings say now, up to {texts:,} texts are embedded again: "
                f"`embed-pipeline collection accept {name}` accepts it, or set it back."
            )
    return found
