"""The knowledge graph, as far as embeddings are concerned.

Discovery and search never load the graph: every call is bounded by its limit or its page.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence, Set
from typing import Protocol

from embed_pipeline.domain.collection import Collection
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
)
from embed_pipeline.domain.entity import Entity, NewEntity
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.domain.partition import AuditPage, AuditRecord, Labelled, PartitionCounts
from embed_pipeline.errors import RequestError


class EntityStore(Protocol):
    @property
    @abstractmethod
    def collections(self) -> tuple[Collection, ...]:
        """In the order of their registration: the first has bare keys as uids."""

    def collection_of(self, entity: Entity) -> Collection:
        return self.collection(entity.collection)

    def collection(self, name: str | None) -> Collection:
        """The first one without a name."""
        for one in self.collections:
            if name in (None, one.name):
                return one
        known = ", ".join(one.name for one in self.collections)
        raise RequestError(f"There is no collection {name!r}; there are: {known}.")

    # -- entities ---------------------------------------------------------------------------

    @abstractmethod
    def create_entities(self, entities: Sequence[NewEntity], *, model: str) -> tuple[Created, ...]:
        """Store new entities, marked as needing an embedding; an existing one is left as it is.

        Within one call the first of a key wins. A soft-deleted one exists too: see `is_valid`.
        """

    @abstractmethod
    def upsert_entities(self, entities: Sequence[NewEntity], *, model: str) -> tuple[Created, ...]:
        """Create, or change text and validity; every change of a text sets the marker.

        A soft-deleted one is revived. A change back to a text whose vectors are still there
        needs no embedding, so the marker goes at once.
        """

    @abstractmethod
    def soft_delete(self, uids: Sequence[EntityUid]) -> tuple[EntityUid, ...]:
        """Set valid-to on those that are valid; returns them."""

    @abstractmethod
    def erase(self, uid: EntityUid, *, delete: bool = False) -> bool:
        """Remove vectors and labels and exclude the entity forever, whatever is written to it.

        `delete` removes the entity itself, and on Neo4j its relationships. False if it is not
        there. A vector that is written meanwhile does not land.
        """

    @abstractmethod
    def get_entity(self, uid: EntityUid) -> Entity | None:
        """Also a soft-deleted one."""

    @abstractmethod
    def find_by_name(self, name: str, *, limit: int = 10) -> tuple[Entity, ...]:
        """Entities of that exact name, valid ones first, then by key."""

    @abstractmethod
    def read_entities(self, uids: Sequence[EntityUid]) -> Mapping[EntityUid, Entity]:
        """Also soft-deleted ones; those that are not there are left out."""

    @abstractmethod
    def next_entities(self, *, limit: int, after: EntityUid | None = None) -> tuple[Entity, ...]:
        """The next entities by key, valid or not."""

    # -- discovery --------------------------------------------------------------------------

    @abstractmethod
    def entities_without_embeddings(
        self, limit: int = 10, *, model: str, after: Bookmark | None = None
    ) -> Discovery:
        """Exactly `limit` valid entities without a vector, if that many exist.

        Marked ones first (index-backed), then a walk by key over the unmarked; `after` is the
        bookmark of the page before. Keys of those that have a vector are passed by, however many,
        and their texts are not read. What is marked while the walk goes on waits for the next one.
        """

    @abstractmethod
    def changed_entities(
        self, *, model: str, limit: int, after: EntityUid | None = None
    ) -> tuple[Entity, ...]:
        """Marked, valid entities whose vector was made from another text; by key."""

    @abstractmethod
    def mark_changed(self) -> int:
        """Mark entities whose time of change is new, where the mapping names one; how many.

        Costs what changed since the last call and in the minute before it.
        """

    @abstractmethod
    def classify(
        self, uids: Sequence[EntityUid], *, model: str
    ) -> Mapping[EntityUid, VectorDefect | None]:
        """The defect of each entity's vector; None for a good one.

        Those that are soft-deleted or not there are left out.
        """

    @abstractmethod
    def is_before(self, first: EntityUid, second: EntityUid) -> bool:
        """Whether a walk by key meets the first uid before the second."""

    @abstractmethod
    def cursor(self, name: str) -> EntityUid | None:
        """Where a named walk stopped last time."""

    @abstractmethod
    def save_cursor(self, name: str, uid: EntityUid | None) -> None: ...

    # -- labels: where each entity stands ---------------------------------------------------

    @abstractmethod
    def counts(self, *, model: str) -> PartitionCounts:
        """How many entities are embedded, missing or neither, in milliseconds at any size.

        It is what the labels say: a change of another program counts once an audit has met it.
        """

    @abstractmethod
    def counts_by_collection(self, *, model: str) -> Mapping[str, PartitionCounts]:
        """The same, by the name of the collection."""

    @abstractmethod
    def audit_page(
        self,
        *,
        model: str,
        after: EntityUid | None,
        size: int,
        repair: bool = True,
        sample: int = 0,
    ) -> AuditPage:
        """Compare the labels of the next `size` entities by key, valid or not, with their
        properties.

        With `repair` each label is set right under lock, in both directions. What has a vector
        that needs another one is marked, and so is what lost its vector. The numbers of vectors
        are not read, except of `sample` vectors of the page, which are checked: numbers that
        another program overwrote are found in no other way.
        """

    @abstractmethod
    def audit_record(self, *, model: str) -> AuditRecord | None: ...

    @abstractmethod
    def save_audit(self, record: AuditRecord) -> None: ...

    @abstractmethod
    def exchange_markers(self, queued: Mapping[EntityUid, str]) -> int:
        """Of the marked entities, those whose text still is that version are marked as queued.

        Returns how many. `counts` and discovery no longer take them for new.
        """

    @abstractmethod
    def relabel(self, uids: Sequence[EntityUid]) -> tuple[Labelled, ...]:
        """Label these entities as their properties say, under lock, and return them.

        One whose vector is of an earlier text is marked. Of one without text an old vector and
        the markers go. Those that are not there are left out.
        """

    # -- vectors ----------------------------------------------------------------------------

    @abstractmethod
    def embedded_versions(
        self, uids: Sequence[EntityUid], *, model: str
    ) -> Mapping[EntityUid, str]:
        """The version that each entity's stored vector of this model was made from."""

    @abstractmethod
    def vectors_of_versions(
        self, versions: Sequence[str] | Set[str], *, model: str
    ) -> Mapping[str, StoredVector]:
        """Vectors already paid for, by the version of the text they were made from.

        One that another program made invalid is left out: `write_vectors` would refuse it.
        """

    @abstractmethod
    def write_vectors(self, writes: Sequence[VectorWrite], *, model: str) -> WriteReport:
        """Each vector lands only if its entity is valid and its text is still the embedded one.

        Compared and written in one transaction. The marker goes only when the current text's
        vector is there for every model that is filling or active. A vector that is zero, not
        finite or of a wrong dimension is a `RequestError`, and then nothing is written; a model
        that takes no vectors is `ModelNotActive`.
        """

    @abstractmethod
    def probe(self) -> None:
        """A cheap write that fails where a real one would."""

    # -- models, search ---------------------------------------------------------------------

    @abstractmethod
    def models(self) -> tuple[ModelRecord, ...]: ...

    @abstractmethod
    def register_first_model(self, model: str, *, dimensions: int) -> ModelRecord | None:
        """Register the model as active if the graph has none yet; its record, None if unknown.

        A run never starts a second model by itself.
        """

    @abstractmethod
    def search(
        self, vector: Vector, *, model: str, limit: int = 10, entity_type: str | None = None
    ) -> SearchResult:
        """The nearest valid entities by cosine; equal ones by key. At most `MOST_HITS`.

        A stale vector is searched until its new one is there: better than not being found.
        """

    @abstractmethod
    def close(self) -> None: ...
