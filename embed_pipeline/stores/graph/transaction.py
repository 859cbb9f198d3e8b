"""What a backend fills so that the graph's store runs on it.

A backend is a `GraphDatabase`, whose `read` and `write` hand a `GraphTransaction` to a function,
and a module of `Statements` with the same names, parameters and columns as every other backend's.
Verbs are here where databases go different ways: each as few statements as its database needs, so
that a batch is a few round trips. When a vector is good, when the marker goes and how a walk goes
on is written once above it.

Rules for all backends:

- `work` may run more than once, so it changes nothing outside its transaction.
- Keys arrive sorted and each once, so that two writers lock what they share in the same order.
- `of` names the vector property that a verb is about.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.embedding import (
    FIRST_PROPERTY,
    ModelRecord,
    ModelState,
    StoredVector,
    VectorFacts,
    VectorWrite,
)
from embed_pipeline.domain.entity import Entity
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.domain.partition import AuditCounts, Labels

T = TypeVar("T")
Uids = Sequence[EntityUid]
Row = Any
"""What a backend's driver returns; columns are read by name."""

Scored = tuple[float, EntityUid]
"""The distance first, so that the smallest is the best and equal ones go by key."""


class Statements(Protocol):
    """Queries that every backend has; names of parameters and columns are the same in all."""

    FIND_BY_NAME: str
    SOFT_DELETE: str
    DELETE_ENTITY: str
    READ_WITH_FACTS: str
    NEXT_WITH_LABELS: str
    MARKED_WITH_FACTS: str
    MARKED_AMONG: str
    MISSING: str
    COUNT_LABELS: str
    EMBEDDED_VERSIONS: str
    READ_VECTORS: str
    VECTORS_OF_VERSIONS: str
    READ_MODELS: str
    ADD_MODEL: str
    READ_CURSOR: str
    SAVE_CURSOR: str
    PROBE: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """An entity, what is known of its vectors by property, and how it is labelled.

    `labels` names the models of those properties only.
    """

    entity: Entity
    facts: Mapping[str, VectorFacts | None]
    labels: Labels


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """A page of the audit: those that are embedded, current and labelled so, and all others."""

    right: Uids = ()
    others: Sequence[Known] = ()
    last: EntityUid | None = None
    """None at the end of the graph."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What becomes of a locked entity; one that is new has nothing before."""

    entity: Entity
    labels: Labels
    before: Entity | None = None
    labels_before: Labels = field(default_factory=Labels)
    dropped: tuple[str, ...] = ()
    """Properties whose vector is removed."""
    disowned: tuple[str, ...] = ()
    """Properties whose vector stays, but is no longer taken for one of ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """`query` is of unit length: float32 would lose very long and very short vectors."""

    query: npt.NDArray[np.float64]
    record: ModelRecord
    limit: int
    entity_type: str | None
    embedded: int
    """How many vectors of the model there are."""


class GraphTransaction(ABC):
    statements: Statements
    read_batch: int = sys.maxsize
    """Entities or vectors that are read in one statement."""

    @abstractmethod
    def all(self, statement: str, *, of: str = FIRST_PROPERTY, **parameters: object) -> list[Row]:
        """Every row; the statement may use the time as the parameter `now`."""

    @abstractmethod
    def entity_of(self, row: Row) -> Entity:
        """Values of other programs are read as they are; any end of validity ends it."""

    @abstractmethod
    def vector_of(self, row: Row) -> StoredVector: ...

    def entities(
        self, statement: str, *, of: str = FIRST_PROPERTY, **parameters: object
    ) -> list[Entity]:
        return [self.entity_of(row) for row in self.all(statement, of=of, **parameters)]

    @abstractmethod
    def known(self, statement: str, *, of: str, **parameters: object) -> list[Known]:
        """The entities that a statement finds, in its order."""

    # -- entities ---------------------------------------------------------------------------

    @abstractmethod
    def read_entities(self, uids: Uids) -> list[Entity]: ...

    @abstractmethod
    def create_missing(self, changes: Sequence[Change], *, of: str) -> list[Known]:
        """Create the entities whose key is new. Return the others as they are, unlocked."""

    @abstractmethod
    def lock_entities(
        self, uids: Uids, *, of: Sequence[str], create: bool = False, measure: bool = True
    ) -> list[Known]:
        """The entities that are there, with the facts of each property; unchanged until the end.

        `create` locks new keys as well: they are left out of the answer, and must be saved.
        Without `measure` the dimensions are not read: for them a server loads all numbers.
        """

    @abstractmethod
    def save(self, changes: Sequence[Change]) -> None:
        """Write what changed of locked entities; all that is saved with other texts is valid."""

    @abstractmethod
    def missing_in_window(
        self, *, of: str, after: EntityUid, size: int, window: int
    ) -> tuple[list[Known], EntityUid | None]:
        """As the statement `MISSING`, of the next `window` keys; and the last key of them, which is
        None at the end of the graph.

        A backend that passes by other entities cheaply may ignore the window.
        """

    def examine(self, *, of: str, model: str, after: EntityUid, size: int) -> Examined:
        """The next entities by key, valid or not; a backend may tell the right ones faster."""
        page = self.known(self.statements.NEXT_WITH_LABELS, of=of, after=after, size=size)
        return Examined(others=page, last=page[-1].entity.uid if len(page) == size else None)

    # -- vectors and models -----------------------------------------------------------------

    @abstractmethod
    def write_vectors(
        self, writes: Sequence[VectorWrite], *, record: ModelRecord, unmark: Set[EntityUid]
    ) -> None:
        """Store and label the vectors of locked entities; those to `unmark` have them all now."""

    def models(self, *, lock: bool = False) -> tuple[ModelRecord, ...]:
        """By registration; `lock` keeps other registrations out until the end."""
        rows = [dict(row) for row in self.all(self.statements.READ_MODELS)]
        return tuple(ModelRecord(**{**row, "state": ModelState(row["state"])}) for row in rows)

    def add_model(self, record: ModelRecord) -> None:
        self.all(self.statements.ADD_MODEL, **{**asdict(record), "state": record.state.value})


class GraphDatabase(ABC):
    """One opened graph, shared by the threads of a process."""

    mapping: Collection
    entities_per_write = vectors_per_write = sys.maxsize
    """Of one transaction; a larger call is several, each of them whole."""

    @abstractmethod
    def read(self, work: Callable[[GraphTransaction], T]) -> T: ...

    @abstractmethod
    def write(self, work: Callable[[GraphTransaction], T]) -> T: ...

    @abstractmethod
    def nearest(self, search: Search) -> list[Scored]:
        """The best by cosine, in any order."""

    def mark_changed(self) -> int:
        """Mark what other programs changed, by their time of change; how many. Only some can."""
        return 0

    @abstractmethod
    def end_audit(self, *, of: str, repair: bool) -> AuditCounts:
        """What a walk by key cannot meet: entities without a usable key, and miscounted labels."""

    @abstractmethod
    def ensure_indexes(self, record: ModelRecord, *, check_only: bool = False) -> None:
        """Make the indexes of the model's vectors, where they are missing.

        One that is there and was made for other dimensions is refused; `check_only` makes none.
        """

    @abstractmethod
    def close(self) -> None: ...


def in_batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
