"""Which collection an entity belongs to, by its uid.

A uid is `prefix/key`. It is split at the first slash, and only if a registered prefix stands before
it; any other uid is a bare key of the collection that was registered first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeVar

from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.embedding import Created, check_limit
from embed_pipeline.domain.entity import Entity, NewEntity
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline.stores.graph.discovery import START
from embed_pipeline.stores.graph.entity_store import GraphEntityStore

T = TypeVar("T")
Uids = Sequence[EntityUid]


class Routing(EntityStore):
    """The stores are opened on first use, because the graph knows their order."""

    def __init__(self, open_stores: Callable[[], Sequence[GraphEntityStore]]) -> None:
        self._open_stores = open_stores

    @cached_property
    def _stores(self) -> Sequence[GraphEntityStore]:
        return self._open_stores()

    @cached_property
    def _by_prefix(self) -> Mapping[str, GraphEntityStore]:
        return {store.mapping.standing.prefix: store for store in self._stores}

    @property
    def _first(self) -> GraphEntityStore:
        return self._stores[0]

    @property
    def collections(self) -> tuple[Collection, ...]:
        return tuple(store.mapping for store in self._stores)

    # -- which store is meant -----------------------------------------------------------------

    def _split(self, uid: EntityUid) -> tuple[GraphEntityStore, EntityUid]:
        prefix, slash, key = uid.partition("/")
        if slash and prefix and prefix in self._by_prefix:
            return self._by_prefix[prefix], EntityUid(key)
        return self._by_prefix[""], uid

    def _grouped(self, uids: Iterable[EntityUid]) -> Mapping[GraphEntityStore, list[EntityUid]]:
        groups: dict[GraphEntityStore, list[EntityUid]] = defaultdict(list)
        for uid in uids:
            store, key = self._split(uid)
            groups[store].append(key)
        return groups

    def _from_each(
        self, uids: Uids, read: Callable[[GraphEntityStore, Uids], Mapping[EntityUid, T]]
    ) -> dict[EntityUid, T]:
        return {
            store.mapping.uid_of(key): value
            for store, keys in self._grouped(uids).items()
            for key, value in read(store, keys).items()
        }

    def _store_for(self, new: NewEntity) -> tuple[GraphEntityStore, NewEntity]:
        if new.collection is not None:
            meant = self.collection(new.collection)
            return self._by_prefix[meant.standing.prefix], new
        if new.uid is None:
            return self._by_prefix[""], new
        store, key = self._split(new.uid)
        return store, replace(new, uid=key)

    def _put(
        self,
        entities: Sequence[NewEntity],
        put: Callable[[GraphEntityStore, Sequence[NewEntity]], Sequence[Created]],
    ) -> tuple[Created, ...]:
        """In the order of the call, whatever collections they belong to."""
        groups: dict[GraphEntityStore, list[tuple[int, NewEntity]]] = defaultdict(list)
        for number, new in enumerate(entities):
            store, bare = self._store_for(new)
            groups[store].append((number, bare))
        made: dict[int, Created] = {}
        for store, part in groups.items():
            done = put(store, [new for _, new in part])
            for (number, _), one in zip(part, done, strict=True):
                made[number] = replace(one, entity=qualified(one.entity, store))
        return tuple(made[number] for number in range(len(entities)))

    def _walk(
        self,
        limit: int,
        after: EntityUid | None,
        read: Callable[[GraphEntityStore, int, EntityUid], Sequence[Entity]],
    ) -> tuple[Entity, ...]:
        """A page of entities by key, collection after collection."""
        check_limit(limit)
        found: list[Entity] = []
        first, start = self._split(after or START)
        for store in self._stores[self._stores.index(first) :]:
            if rest := limit - len(found):
                found += [qualified(one, store) for one in read(store, rest, start)]
            start = START
        return tuple(found)


def qualified(entity: Entity, store: GraphEntityStore) -> Entity:
    return renamed(entity, store.mapping.uid_of(entity.uid))


def renamed(entity: Entity, uid: EntityUid) -> Entity:
    return entity if entity.uid == uid else replace(entity, uid=uid)
