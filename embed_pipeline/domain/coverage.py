"""How much of the graph is embedded."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


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
    """Not among the entities: deleted, or without a usable key."""
    audit: Audited | None = None

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
