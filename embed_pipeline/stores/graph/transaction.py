"""What a backend fills so that the graph's store runs on it.

A backend is a `GraphDatabase`, whose `read` and `write` hand a `GraphTransaction` to a function.
A verb is as few statements as the database needs, so that a batch is a few round trips. What is
not here is written once above it: which vector is good, when the marker goes, how a walk goes on.

Rules for all backends:

- `work` may run more than once, so it changes nothing outside its transaction.
- Keys arrive sorted and each once, so that two writers lock what they share in the same order.
- Values of other programs are read as what they are: whatever ends an entity's validity ends it.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from embed_pipeline.domain.embedding import ModelRecord, StoredVector, VectorFacts, VectorWrite
from embed_pipeline.domain.entity import Entity, EntityMapping
from embed_pipeline.domain.job import EntityUid

T = TypeVar("T")

WithFacts = tuple[Entity, VectorFacts | None]
"""An entity, and what is known of its vector under the property that was asked for."""

Scored = tuple[float, EntityUid]
"""The distance first, so that the smallest is the best and equal ones go by key."""

Query = npt.NDArray[np.float64]
"""The vector to search for, of unit length: float32 would lose very long and very short ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Of one type, or of all: valid entities, and how many vectors of the model they have."""

    entities: int
    vectors: int = 0


class GraphTransaction(ABC):
    # -- entities ---------------------------------------------------------------------------

    @abstractmethod
    def read_entities(self, uids: Sequence[EntityUid]) -> list[Entity]: ...

    @abstractmethod
    def find_by_name(self, name: str, *, limit: int) -> list[Entity]: ...

    @abstractmethod
    def create_missing(
        self, entities: Sequence[Entity], *, vector_property: str
    ) -> list[WithFacts]:
        """Create the entities whose key is new, marked. Return the others as they are, unlocked."""

    @abstractmethod
    def lock_entities(
        self, uids: Sequence[EntityUid], *, vector_properties: Sequence[str], create: bool = False
    ) -> list[tuple[Entity, Mapping[str, VectorFacts | None]]]:
        """The entities that are there, with the facts of each property; unchanged until the end.

        `create` locks new keys as well: they are left out of the answer, and must be saved.
        """

    @abstractmethod
    def save_entities(self, changes: Sequence[tuple[Entity, Entity | None]]) -> None:
        """Write each entity over what was there before; it is valid and marked then."""

    @abstractmethod
    def clear_markers(self, uids: Sequence[EntityUid]) -> None: ...

    @abstractmethod
    def soft_delete(self, uids: Sequence[EntityUid]) -> list[EntityUid]: ...

    # -- discovery --------------------------------------------------------------------------

    @abstractmethod
    def read_with_facts(
        self, uids: Sequence[EntityUid], *, vector_property: str
    ) -> list[WithFacts]: ...

    @abstractmethod
    def next_with_facts(
        self, *, vector_property: str, after: EntityUid, size: int, marked: bool = False
    ) -> list[WithFacts]:
        """Valid ones by key; `marked` leaves only those that are marked and have some vector."""

    @abstractmethod
    def marked_without_vector(
        self, *, vector_property: str, after: EntityUid, size: int
    ) -> list[Entity]:
        """Valid ones by key."""

    @abstractmethod
    def unmarked_without_vector(
        self, *, vector_property: str, after: EntityUid, size: int, window: int
    ) -> tuple[list[Entity], EntityUid | None]:
        """Up to `size` of the next `window` keys, and the last key; None at the end of the graph.

        A backend that passes by embedded entities cheaply may ignore the window.
        """

    @abstractmethod
    def cursor(self, name: str) -> EntityUid | None: ...

    @abstractmethod
    def save_cursor(self, name: str, uid: EntityUid | None) -> None: ...

    # -- vectors and models -----------------------------------------------------------------

    @abstractmethod
    def embedded_versions(
        self, uids: Sequence[EntityUid], *, record: ModelRecord
    ) -> dict[EntityUid, str]: ...

    @abstractmethod
    def vectors_of_versions(
        self, versions: Sequence[str], *, record: ModelRecord
    ) -> dict[str, StoredVector]: ...

    @abstractmethod
    def write_vectors(
        self, writes: Sequence[VectorWrite], *, record: ModelRecord, unmark: Collection[EntityUid]
    ) -> None:
        """Store the vectors of locked entities; those to `unmark` have them all now."""

    @abstractmethod
    def probe(self) -> None: ...

    @abstractmethod
    def models(self, *, lock: bool = False) -> tuple[ModelRecord, ...]:
        """By registration; `lock` keeps other registrations out until the end."""

    @abstractmethod
    def add_model(self, record: ModelRecord) -> None: ...

    @abstractmethod
    def count(self, *, model: str, vector_property: str, entity_type: str | None) -> Counts: ...


class GraphDatabase(ABC):
    """One opened graph. Its threads share it; `close` is final for the connections it holds."""

    mapping: EntityMapping
    entities_per_write: int = sys.maxsize
    """Entities of one transaction; a larger call is several, each of them whole."""
    vectors_per_write: int = sys.maxsize

    @abstractmethod
    def read(self, work: Callable[[GraphTransaction], T]) -> T: ...

    @abstractmethod
    def write(self, work: Callable[[GraphTransaction], T]) -> T: ...

    @abstractmethod
    def nearest(
        self,
        query: Query,
        *,
        record: ModelRecord,
        limit: int,
        entity_type: str | None,
        counts: Counts,
    ) -> tuple[list[Scored], int]:
        """The best by cosine, in any order, and how many vectors were searched."""

    @abstractmethod
    def ensure_indexes(self, record: ModelRecord, *, check_only: bool = False) -> None:
        """Make the indexes of the model's vectors, where they are missing.

        One that is there and was made for other dimensions is refused; `check_only` makes none.
        """

    @abstractmethod
    def close(self) -> None: ...


class GraphPart:
    """A part of the store: some of its verbs over one database."""

    def __init__(self, graph: GraphDatabase) -> None:
        self._graph = graph

    @property
    def mapping(self) -> EntityMapping:
        return self._graph.mapping


def in_batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
