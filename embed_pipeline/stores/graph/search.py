"""Search: the nearest vectors, as the backend finds them, and the entities they belong to."""

from __future__ import annotations

import numpy as np

from embed_pipeline.domain.embedding import (
    MOST_HITS,
    Hit,
    SearchResult,
    Vector,
    check_limit,
    vector_problem,
)
from embed_pipeline.errors import RequestError
from embed_pipeline.stores.graph.audit import AuditVerbs
from embed_pipeline.stores.graph.entities import EntityVerbs
from embed_pipeline.stores.graph.models import find_model
from embed_pipeline.stores.graph.transaction import Search


class SearchVerbs(AuditVerbs, EntityVerbs):
    def search(
        self, vector: Vector, *, model: str, limit: int = 10, entity_type: str | None = None
    ) -> SearchResult:
        check_limit(limit, most=MOST_HITS)
        record = self._graph.read(lambda tx: find_model(tx, model))
        if problem := vector_problem(
            vector, dimensions=record.dimensions if record else vector.size
        ):
            raise RequestError(f"The vector to search for {problem}.")
        counts = self.counts(model=model)
        if record is None:
            return SearchResult(entities=counts.embeddable)
        fixed = self.mapping.fixed_type
        if fixed is not None:
            if entity_type not in (None, fixed):
                return SearchResult(searchable=counts.embedded, entities=counts.embeddable)
            entity_type = None  # all of its entities have it
        wide = vector.astype(np.float64)
        scored = self._graph.nearest(
            Search(
                query=wide / np.linalg.norm(wide),
                record=record,
                limit=limit,
                entity_type=entity_type,
                embedded=counts.embedded,
            )
        )
        best = sorted(scored)[:limit]
        # Read last, so only the best are; one that left since it was scored is left out.
        found = self.read_entities([uid for _, uid in best])
        hits = tuple(
            Hit(entity=entity, score=-distance)
            for distance, uid in best
            if (entity := found.get(uid)) is not None
            and entity.is_valid
            and entity_type in (None, entity.entity_type)
        )
        return SearchResult(hits=hits, searchable=counts.embedded, entities=counts.embeddable)
