"""Where each entity stands: embedded, nothing to embed, excluded, or none of them: missing.

A graph keeps it as labels (in SQLite as columns) that are written together with the vector, so
that counting and finding what is missing never depends on the size of the graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta

from embed_pipeline.domain.embedding import ModelRecord, VectorDefect, VectorFacts, defect_of
from embed_pipeline.domain.entity import Entity
from embed_pipeline.domain.job import EntityUid

DELETED, NO_KEY, ERASED = "deleted", "no_key", "erased"
FILTERED, OTHER_COLLECTION = "filtered", "other_collection"
"""Why an entity is excluded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """What an entity is labelled; without one of the first three it is missing."""

    embedded: frozenset[str] = frozenset()
    """The label of each model that it has a vector of."""
    nothing_to_embed: bool = False
    excluded: str | None = None
    """The reason."""
    marked: bool = False
    queued: bool = False
    """It was marked, and a job of its text was queued since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    entity: Entity
    labels: Labels


def labels_for(
    entity: Entity,
    facts: Mapping[str, VectorFacts | None],
    models: Sequence[ModelRecord],
    before: Labels,
) -> Labels:
    """What the properties say, whatever another program did to them or to the labels.

    A vector of an earlier text is searched until its new one is there, so it counts as embedded,
    and is marked. An entity that lost its vector is marked too; one that never had any is found
    without a mark.
    """
    if entity.erased:
        return Labels(excluded=ERASED)
    if not entity.is_valid:
        return Labels(excluded=DELETED)
    if not entity.text:
        return Labels(nothing_to_embed=True)
    defects = {
        model: defect_of(entity, facts.get(model.vector_property), model) for model in models
    }
    embedded = frozenset(
        model.embedded_label
        for model, defect in defects.items()
        if defect in (None, VectorDefect.STALE)
    )
    taking = [defect for model, defect in defects.items() if model.takes_vectors]
    if taking and not any(taking):
        return Labels(embedded=embedded)
    marked = before.marked or VectorDefect.STALE in taking or bool(before.embedded - embedded)
    return Labels(embedded=embedded, marked=marked, queued=before.queued and not marked)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionCounts:
    """How many entities have each label, for one model; `marked` are changed and not yet queued."""

    entities: int = 0
    embedded: int = 0
    """With a vector of the model; also one whose text has changed since."""
    nothing_to_embed: int = 0
    excluded: int = 0
    unseen: int = 0
    """Of the excluded: nodes of the label that have no usable key."""
    marked: int = 0

    def __add__(self, other: PartitionCounts) -> PartitionCounts:
        names = [count.name for count in fields(PartitionCounts)]
        added = {name: getattr(self, name) + getattr(other, name) for name in names}
        return PartitionCounts(**added)

    @property
    def embeddable(self) -> int:
        return max(self.entities - self.nothing_to_embed - self.excluded, 0)

    @property
    def missing(self) -> int:
        return max(self.embeddable - self.embedded, 0)

    def shown(self) -> dict[str, int]:
        """By state, with the valid entities as `entities`."""
        return {
            "entities": max(self.entities - self.excluded, 0),
            "embedded": self.embedded,
            "missing": self.missing,
            "nothing_to_embed": self.nothing_to_embed,
            "excluded": self.excluded,
            "unseen": self.unseen,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditCounts:
    """What an audit found; each entity it examined is counted once in the first eight."""

    embedded: int = 0
    missing: int = 0
    stale: int = 0
    wrong_model: int = 0
    wrong_dimension: int = 0
    invalid: int = 0
    """The numbers are zero or not finite; only a sample is checked."""
    nothing_to_embed: int = 0
    excluded: int = 0
    repaired: int = 0
    """Labels were not what the properties say."""
    marked: int = 0

    @property
    def examined(self) -> int:
        return sum(getattr(self, count.name) for count in fields(AuditCounts)[:8])

    def __add__(self, other: AuditCounts) -> AuditCounts:
        names = [count.name for count in fields(AuditCounts)]
        return AuditCounts(**{name: getattr(self, name) + getattr(other, name) for name in names})


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPage(AuditCounts):
    """One page of an audit; `next_after` is None at the end of the graph."""

    next_after: EntityUid | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPass:
    """A walk over the whole graph: complete with `ended_at`, or under way at `after`."""

    started_at: datetime
    counts: AuditCounts = field(default_factory=AuditCounts)
    after: EntityUid | None = None
    ended_at: datetime | None = None

    @property
    def duration(self) -> timedelta | None:
        return self.ended_at - self.started_at if self.ended_at else None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """What the graph keeps of the audits of one model."""

    model: str
    last: AuditPass | None = None
    """The last complete pass."""
    current: AuditPass | None = None
    """The pass under way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """When the last complete audit ended; how long it took, and how long ago, in seconds."""

    at: datetime
    duration: float
    age: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How much of the graph is embedded.

    Stale, wrong and invalid vectors are those of the last complete audit, unless the graph was
    read for this: a stale one is also counted as embedded, the others as missing.
    """

    entities: int = 0
    """Valid ones, with or without text."""
    embedded: int = 0
    missing: int = 0
    stale: int = 0
    wrong_model: int = 0
    wrong_dimension: int = 0
    invalid: int = 0
    nothing_to_embed: int = 0
    excluded: int = 0
    """Not among the entities: deleted, erased, filtered out, or without a usable key."""
    unseen: int = 0
    """Of the excluded: nodes without a usable key, which nothing can name."""
    audit: Audited | None = None
    collections: Mapping[str, PartitionCounts] = field(default_factory=dict)
    """By name, what was counted of each collection."""

    @property
    def embeddable(self) -> int:
        return self.entities - self.nothing_to_embed

    @property
    def gaps(self) -> int:
        return max(self.embeddable - self.embedded, 0)

    @property
    def percent(self) -> float | None:
        """Of what can be embedded; None without any entity."""
        if not self.embeddable:
            return 100.0 if self.entities else None
        return min(100 * self.embedded / self.embeddable, 100.0)
