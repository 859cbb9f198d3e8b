"""The knowledge graph's store over any backend: its verbs are in the modules beside this one."""

from __future__ import annotations

from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline.stores.graph.audit import AuditVerbs
from embed_pipeline.stores.graph.models import ModelVerbs
from embed_pipeline.stores.graph.search import SearchVerbs
from embed_pipeline.stores.graph.vectors import VectorVerbs


class GraphEntityStore(SearchVerbs, AuditVerbs, VectorVerbs, ModelVerbs, EntityStore):
    """`close` closes the database too: give each store its own, or close only the last store."""

    def close(self) -> None:
        self._graph.close()
