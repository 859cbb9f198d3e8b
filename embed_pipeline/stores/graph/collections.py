"""Several collections as one store: each call goes to the stores that it concerns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, replace
from itertools import chain

from embed_pipeline.domain.embedding import (
    Bookmark,
    Created,
    Discovery,
    ModelRecord,
    SearchResult,
    StoredVector,
    Vector,
    VectorDefect,
    VectorWrite,
    WriteReport,
    check_limit,
    check_writes,
)
from embed_pipeline.domain.entity import Entity, NewEntity
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.domain.partition import (
    AuditCounts,
    AuditPage,
    AuditRecord,
    Labelled,
    PartitionCounts,
)
from embed_pipeline.stores.graph.discovery import START
from embed_pipeline.stores.graph.entity_store import GraphEntityStore
from embed_pipeline.stores.graph.models import named, taking_vectors
from embed_pipeline.stores.graph.routing import Routing, Uids, qualified, renamed


class CollectionsEntityStore(Routing):
    # -- entities -----------------------------------------------------------------------------

    def create_entities(self, entities: Sequence[NewEntity], *, model: str) -> tuple[Created, ...]:
        return self._put(entities, lambda store, part: store.create_entities(part, model=model))

    def upsert_entities(self, entities: Sequence[NewEntity], *, model: str) -> tuple[Created, ...]:
        return self._put(entities, lambda store, part: store.upsert_entities(part, model=model))

    def soft_delete(self, uids: Uids) -> tuple[EntityUid, ...]:
        parts = ((store, store.soft_delete(keys)) for store, keys in self._grouped(uids).items())
        return tuple(store.mapping.uid_of(key) for store, deleted in parts for key in deleted)

    def erase(self, uid: EntityUid, *, delete: bool = False) -> bool:
        store, key = self._split(uid)
        return store.erase(key, delete=delete)

    def get_entity(self, uid: EntityUid) -> Entity | None:
        return self.read_entities([uid]).get(uid)

    def find_by_name(self, name: str, *, limit: int = 10) -> tuple[Entity, ...]:
        found = [
            qualified(entity, store)
            for store in self._stores
            for entity in store.find_by_name(name, limit=limit)
        ]
        return tuple(sorted(found, key=lambda entity: not entity.is_valid)[:limit])

    def read_entities(self, uids: Uids) -> Mapping[EntityUid, Entity]:
        found = self._from_each(uids, lambda store, keys: store.read_entities(keys))
        return {uid: renamed(entity, uid) for uid, entity in found.items()}

    def next_entities(self, *, limit: int, after: EntityUid | None = None) -> tuple[Entity, ...]:
        return self._walk(
            limit, after, lambda store, rest, key: store.next_entities(limit=rest, after=key)
        )

    # -- discovery ----------------------------------------------------------------------------

    def entities_without_embeddings(
        self, limit: int = 10, *, model: str, after: Bookmark | None = None
    ) -> Discovery:
        """The marked ones of all collections, then the others; each collection after the other."""
        check_limit(limit)
        record = named(self.models(), model)
        found: dict[EntityUid, Entity] = {}
        bookmark = after or Bookmark(uid=START, marked=True)
        start_store, start = self._split(bookmark.uid)
        parts = [(store, marked) for marked in (True, False) for store in self._stores]
        for store, marked in parts[parts.index((start_store, bookmark.marked)) :]:
            rest = limit - len(found)
            page = store.missing(record, marked=marked, after=start, limit=rest)
            found |= {store.mapping.uid_of(one.uid): qualified(one, store) for one in page}
            if len(page) == rest:
                last = store.mapping.uid_of(page[-1].uid)
                there = Bookmark(uid=last, marked=marked)
                return Discovery(entities=tuple(found.values()), bookmark=there)
            start = START
        return Discovery(entities=tuple(found.values()))

    def changed_entities(
        self, *, model: str, limit: int, after: EntityUid | None = None
    ) -> tuple[Entity, ...]:
        return self._walk(
            limit,
            after,
            lambda store, rest, key: store.changed_entities(model=model, limit=rest, after=key),
        )

    def mark_changed(self) -> int:
        return sum(store.mark_changed() for store in self._stores)

    def classify(self, uids: Uids, *, model: str) -> Mapping[EntityUid, VectorDefect | None]:
        return self._from_each(uids, lambda store, keys: store.classify(keys, model=model))

    def is_before(self, first: EntityUid, second: EntityUid) -> bool:
        (one, key), (other, other_key) = self._split(first), self._split(second)
        if one is other:
            return one.is_before(key, other_key)
        return self._stores.index(one) < self._stores.index(other)

    def cursor(self, name: str) -> EntityUid | None:
        return self._first.cursor(name)

    def save_cursor(self, name: str, uid: EntityUid | None) -> None:
        self._first.save_cursor(name, uid)

    # -- labels -------------------------------------------------------------------------------

    def counts(self, *, model: str) -> PartitionCounts:
        return sum(self.counts_by_collection(model=model).values(), PartitionCounts())

    def counts_by_collection(self, *, model: str) -> Mapping[str, PartitionCounts]:
        return {store.mapping.name: store.counts(model=model) for store in self._stores}

    def audit_page(
        self,
        *,
        model: str,
        after: EntityUid | None,
        size: int,
        repair: bool = True,
        sample: int = 0,
    ) -> AuditPage:
        """Behind the last entity of a collection the next one begins."""
        first, start = self._split(after or START)
        counts, there = AuditCounts(), None
        for store in self._stores[self._stores.index(first) :]:
            if counts.examined >= size:
                there = store.mapping.uid_of(START)
                break
            page = store.audit_page(
                model=model, after=start, size=size - counts.examined, repair=repair, sample=sample
            )
            counts += page
            if page.next_after is not None:
                there = store.mapping.uid_of(page.next_after)
                break
            start = START
        return AuditPage(**asdict(counts), next_after=there)

    def audit_record(self, *, model: str) -> AuditRecord | None:
        return self._first.audit_record(model=model)

    def save_audit(self, record: AuditRecord) -> None:
        self._first.save_audit(record)

    def exchange_markers(self, queued: Mapping[EntityUid, str]) -> int:
        return sum(
            store.exchange_markers({key: queued[store.mapping.uid_of(key)] for key in keys})
            for store, keys in self._grouped(queued).items()
        )

    def relabel(self, uids: Uids) -> tuple[Labelled, ...]:
        return tuple(
            replace(one, entity=qualified(one.entity, store))
            for store, keys in self._grouped(uids).items()
            for one in store.relabel(keys)
        )

    # -- vectors ------------------------------------------------------------------------------

    def embedded_versions(self, uids: Uids, *, model: str) -> Mapping[EntityUid, str]:
        return self._from_each(uids, lambda store, keys: store.embedded_versions(keys, model=model))

    def vectors_of_versions(
        self, versions: Sequence[str] | Set[str], *, model: str
    ) -> Mapping[str, StoredVector]:
        found: dict[str, StoredVector] = {}
        for store in self._stores:
            rest = set(versions).difference(found)
            found |= store.vectors_of_versions(rest, model=model)
        return found

    def write_vectors(self, writes: Sequence[VectorWrite], *, model: str) -> WriteReport:
        if writes:
            check_writes(writes, taking_vectors(self.models(), model))
        groups: dict[GraphEntityStore, list[VectorWrite]] = defaultdict(list)
        for write in writes:
            store, key = self._split(write.uid)
            groups[store].append(replace(write, entity=renamed(write.entity, key)))
        reports = [
            (store, asdict(store.write_vectors(part, model=model)))
            for store, part in groups.items()
        ]
        return WriteReport(
            **{
                name: tuple(
                    store.mapping.uid_of(key) for store, said in reports for key in said[name]
                )
                for name in ("written", "superseded", "gone")
            }
        )

    def probe(self) -> None:
        self._first.probe()

    # -- models, search -----------------------------------------------------------------------

    def models(self) -> tuple[ModelRecord, ...]:
        return self._first.models()

    def register_first_model(self, model: str, *, dimensions: int) -> ModelRecord | None:
        """With the first collection, then with the others, which may keep files of their own."""
        record = self._first.register_first_model(model, dimensions=dimensions)
        if record is not None:
            for store in self._stores[1:]:
                store.share_model(record)
        return record

    def search(
        self, vector: Vector, *, model: str, limit: int = 10, entity_type: str | None = None
    ) -> SearchResult:
        found = [
            (store, store.search(vector, model=model, limit=limit, entity_type=entity_type))
            for store in self._stores
        ]
        hits = chain.from_iterable(
            (replace(hit, entity=qualified(hit.entity, store)) for hit in result.hits)
            for store, result in found
        )
        best = sorted(hits, key=lambda hit: (-hit.score, hit.entity.uid))[:limit]
        return SearchResult(
            hits=tuple(best),
            searchable=sum(result.searchable for _, result in found),
            entities=sum(result.entities for _, result in found),
        )

    def close(self) -> None:
        for store in self.__dict__.get("_stores", ()):
            store.close()
