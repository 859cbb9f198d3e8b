"""Models, vectors and the true state of a graph's embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from embed_pipeline.model.entity import Entity, TextValue
from embed_pipeline.model.job import EntityUid

Vector = npt.NDArray[np.float32]


class ModelState(StrEnum):
    FILLING = "filling"
    ACTIVE = "active"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRecord:
    """One entry of the graph's registry; `model` is `provider/name@dimensions`."""

    model: str
    dimensions: int
    vector_property: str
    index_name: str
    state: ModelState

    @property
    def takes_vectors(self) -> bool:
        return self.state in (ModelState.FILLING, ModelState.ACTIVE)


class Flaw(StrEnum):
    """Why an entity's vector cannot be trusted."""

    MISSING = "missing"
    STALE = "stale"
    """Made from another text than the entity has now."""
    WRONG_DIMENSION = "wrong dimension"
    WRONG_MODEL = "wrong model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An entity that a walk found, and what is wrong with its vector."""

    entity: Entity
    flaw: Flaw


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A step of the keyset walk; `next_after` is None at the end of the graph."""

    candidates: tuple[Candidate, ...] = ()
    examined: int = 0
    next_after: EntityUid | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorWrite:
    """A vector and the texts it was made from: it lands only on an entity that still has them."""

    uid: EntityUid
    texts: tuple[TextValue, ...]
    version: str
    vector: Vector
    truncated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteReport:
    written: tuple[EntityUid, ...] = ()
    superseded: tuple[EntityUid, ...] = ()
    """The text changed meanwhile; the current version has to be queued."""
    gone: tuple[EntityUid, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """What became of one entity handed in, and what the queue has to know of it."""

    entity: Entity
    existing: bool = False
    changed: bool = True
    embedded: bool = False
    """The graph holds the vector of this very version already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """The true state: counted, never estimated. `embedded` is of valid entities."""

    entities: int = 0
    embedded: int = 0
    missing: int = 0
    stale: int = 0
    wrong_model: int = 0
    wrong_dimension: int = 0

    @property
    def percent(self) -> float | None:
        return 100 * self.embedded / self.entities if self.entities else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    entity: Entity
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """Hits, best first, and how many entities the search could see at all."""

    hits: Sequence[Hit] = ()
    searchable: int = 0
    entities: int = 0
