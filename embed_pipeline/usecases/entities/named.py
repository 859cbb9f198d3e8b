"""Find the one entity that a person means by a name or a key."""

from __future__ import annotations

from embed_pipeline.domain.entity import Entity
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.errors import EntityNotFound, RequestError
from embed_pipeline.ports.entity_store import EntityStore

SHOWN_NAMESAKES = 5


def find_entity(graph: EntityStore, *, name: str | None, key: EntityUid | None) -> Entity:
    """A valid entity; a key wins over a name. Several of one name are refused with their keys."""
    if key is not None:
        found = graph.get_entity(key)
        if found is None or not found.is_valid:
            raise EntityNotFound(f"No valid entity has the key {key!r}.")
        return found
    if not name or not name.strip():
        raise RequestError("An entity name must not be empty.")
    namesakes = graph.find_by_name(name, limit=SHOWN_NAMESAKES + 1)
    valid = [entity for entity in namesakes if entity.is_valid]
    if not valid:
        gone = " any more: it was deleted" if namesakes else ""
        raise EntityNotFound(f"No entity is named {name!r}{gone}.")
    if len(valid) > 1:
        keys = ", ".join(f"{e.uid} ({e.entity_type})" for e in valid[:SHOWN_NAMESAKES])
        more = " and more" if len(valid) > SHOWN_NAMESAKES else ""
        raise RequestError(
            f"Several entities are named {name!r}: {keys}{more}. Name one by its key."
        )
    return valid[0]
