"""Models, vectors and the true state of a graph's embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from embed_pipeline.domain.entity import Entity
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.errors import RequestError

Vector = npt.NDArray[np.float32]

FIRST_PROPERTY = "embedding"
"""The first model's vector property; one property cannot carry two dimensions."""

MOST_HITS = 1000
"""How many hits one search may ask for."""


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

    @property
    def embedded_label(self) -> str:
        return embedded_label(self.vector_property)


def embedded_label(vector_property: str) -> str:
    """What entities with a vector under that property are labelled."""
    return "Embedded" + vector_property.removeprefix(FIRST_PROPERTY)


def first_record(model: str, *, dimensions: int) -> ModelRecord:
    """What the first model of a graph is registered as."""
    if not model or dimensions < 1:
        raise RequestError(f"A model needs a name and dimensions, got {model!r} and {dimensions}.")
    return ModelRecord(
        model=model,
        dimensions=dimensions,
        vector_property=FIRST_PROPERTY,
        index_name=f"{FIRST_PROPERTY}_index",
        state=ModelState.ACTIVE,
    )


class VectorDefect(StrEnum):
    """Why an entity's vector cannot be trusted."""

    MISSING = "missing"
    STALE = "stale"
    """Made from another text than the entity has now."""
    WRONG_DIMENSION = "wrong dimension"
    WRONG_MODEL = "wrong model"


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorFacts:
    """What the graph knows of a stored vector without reading its numbers."""

    model: str
    version: str
    dimensions: int | None
    """None if even they were not read: the model has but one number of them."""


def defect_of(
    entity: Entity, facts: VectorFacts | None, record: ModelRecord | None
) -> VectorDefect | None:
    """The first defect that applies, so that every entity counts once; None for a good vector.

    Without a record the graph does not know the model, so any vector is another model's.
    """
    if facts is None:
        return VectorDefect.MISSING
    if record is None or facts.model != record.model:
        return VectorDefect.WRONG_MODEL
    if facts.dimensions not in (None, record.dimensions):
        return VectorDefect.WRONG_DIMENSION
    return None if facts.version == entity.version else VectorDefect.STALE


@dataclass(frozen=True, slots=True, kw_only=True)
class Bookmark:
    """Where discovery stopped: the last entity returned, and in which of its two parts."""

    uid: EntityUid
    marked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """Entities without a vector; `bookmark` is None when there are no more."""

    entities: tuple[Entity, ...] = ()
    bookmark: Bookmark | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorWrite:
    """A vector and the entity it was made from: it lands only while that still has its text."""

    entity: Entity
    vector: Vector
    truncated: bool = False

    @property
    def uid(self) -> EntityUid:
        return self.entity.uid

    @property
    def text(self) -> str:
        return self.entity.text

    @property
    def version(self) -> str:
        return self.entity.version


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredVector:
    """A vector that was paid for, and whether its text was cut."""

    vector: Vector
    truncated: bool = False


def check_writes(writes: Sequence[VectorWrite], record: ModelRecord) -> None:
    """Refuse vectors that no search could use: a bug of the caller, so nothing is written."""
    for write in writes:
        if problem := vector_problem(write.vector, dimensions=record.dimensions):
            raise RequestError(f"The vector of entity {write.uid} {problem}.")


def vector_problem(vector: Vector, *, dimensions: int) -> str | None:
    if vector.shape != (dimensions,):
        return f"has the shape {vector.shape}, the model has {dimensions} dimensions"
    if not np.isfinite(vector).all():
        return "holds numbers that are not finite"
    return None if vector.any() else "is zero, so it has no direction"


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
class Hit:
    entity: Entity
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """Hits, best first. `searchable` of the `entities` that have a text have a vector.

    Both are of the whole graph, whatever type was asked for: to count a type would take longer
    than to search it.
    """

    hits: Sequence[Hit] = ()
    searchable: int = 0
    entities: int = 0


def check_limit(limit: int, *, most: int | None = None) -> None:
    if limit < 1 or (most is not None and limit > most):
        bounds = "at least 1" if most is None else f"from 1 to {most}"
        raise RequestError(f"limit must be {bounds}, got {limit}.")
