"""The names of what is ours on a node, and how any name is put into Cypher.

Ours on a node: the labels below, one for each model that it has a vector of, and beside each
vector its model, version, time and whether its text was cut. Their names follow the vector's,
because a graph may hold several models. All collections share the marker and the label of the
vector index; the other labels of a later collection end with its name, so that it is counted apart.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from embed_pipeline.domain.collection import Collection

MARKER, QUEUED = "NeedsEmbedding", "EmbeddingQueued"
NOTHING, EXCLUDED, UNSEEN = "NothingToEmbed", "EmbeddingExcluded", "EmbeddingUnseen"
NEIGHBOUR_CHANGED, NEIGHBOUR_EXPANDING = "NeighbourChanged", "NeighbourExpanding"
"""On nodes whose values are in the text of others: changed, and just now passed on to these."""
REASON = "embedding_excluded"
"""The property that says why an entity is excluded."""

# Cypher 5 reads `\u0060` as a backtick before it parses, so doubling backticks is not enough.
_IDENTIFIER = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorNames:
    """The properties that belong to one vector."""

    vector: str
    model: str
    version: str
    embedded_at: str
    truncated: str

    @property
    def beside(self) -> tuple[str, ...]:
        """What makes the vector one of ours."""
        return self.model, self.version, self.embedded_at, self.truncated

    def as_parameter(self) -> dict[str, str]:
        return {"vector": self.vector, "model": self.model, "version": self.version}


def vector_names(vector: str) -> VectorNames:
    return VectorNames(
        vector=vector,
        model=f"{vector}_model",
        version=f"{vector}_version",
        embedded_at=vector.replace("embedding", "embedded", 1) + "_at",
        truncated=f"{vector}_truncated",
    )


def is_identifier(name: str) -> bool:
    return _IDENTIFIER.fullmatch(name) is not None


def quoted(identifier: str) -> str:
    if not is_identifier(identifier):
        raise ValueError(f"{identifier!r} is no name of letters, digits and underscores")
    return f"`{identifier}`"


def own(name: str, collection: Collection) -> str:
    """The name of a label or property of ours that a later collection has to itself."""
    prefix = collection.standing.prefix
    return f"{name}In_{prefix}" if prefix else name
