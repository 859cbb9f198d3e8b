"""Erase: what the pipeline keeps of one entity is removed, and it is never embedded again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from embed_pipeline.domain.embedding import Vector
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.errors import EntityNotFound
from embed_pipeline.telemetry import emit
from embed_pipeline.worker.context import Services

OUT_OF_REACH = (
    "logs, and Dagster's history of runs, which may name the entity",
    "backups of the databases, and free pages of SQLite files until they are overwritten",
    "what was sent to the embedding provider",
    "the last error patterns of `health`, which may quote a provider's message",
)
KEPT = "the node with its own properties, which --delete removes"


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseReport:
    key: EntityUid
    deleted: bool
    """The entity itself was removed as well."""
    jobs: int
    """Jobs that were deleted, with their error texts."""
    vectors: int
    """Vectors that were removed; each was searched for afterwards."""
    left: tuple[str, ...]
    """What was found of it afterwards; empty if the erasure is complete."""
    out_of_reach: tuple[str, ...] = OUT_OF_REACH


def erase(services: Services, key: EntityUid, *, delete: bool = False) -> EraseReport:
    """Remove vectors, labels and jobs, exclude the entity, and look for what is left.

    Nothing is sent to the provider: the search uses the vectors that were removed.
    """
    entity = services.graph.get_entity(key)
    if entity is None and not services.jobs.history.of_entity(key):
        raise EntityNotFound(f"No entity has the key {key!r}, and no job is of it.")
    vectors = _vectors_of(services, key)
    # The graph first: from then on no vector lands, whoever holds the job.
    services.graph.erase(key, delete=delete)
    job_ids = services.jobs.erase(key)
    emit("entity.erased", count=len(job_ids))
    is_deleted = entity is not None and delete
    return EraseReport(
        key=key,
        deleted=is_deleted,
        jobs=len(job_ids),
        vectors=len(vectors),
        left=_left(services, key, vectors),
        out_of_reach=OUT_OF_REACH if entity is None or delete else (KEPT, *OUT_OF_REACH),
    )


def _vectors_of(services: Services, key: EntityUid) -> Mapping[str, Vector]:
    """By model."""
    found: dict[str, Vector] = {}
    for record in services.graph.models():
        versions = services.graph.embedded_versions([key], model=record.model).values()
        stored = services.graph.vectors_of_versions(set(versions), model=record.model)
        found.update((record.model, each.vector) for each in stored.values())
    return found


def _left(services: Services, key: EntityUid, vectors: Mapping[str, Vector]) -> tuple[str, ...]:
    graph = services.graph
    left = [
        f"a search finds it by its vector of {model}"
        for model, vector in vectors.items()
        if any(hit.entity.uid == key for hit in graph.search(vector, model=model).hits)
    ]
    left += [
        f"a vector of {record.model}"
        for record in graph.models()
        if graph.embedded_versions([key], model=record.model)
    ]
    entity = graph.get_entity(key)
    if entity is not None and not entity.erased:
        left.append("the entity is not excluded: another program has written it meanwhile")
    if jobs := services.jobs.history.of_entity(key):
        left.append(f"{len(jobs)} jobs, queued meanwhile")
    return tuple(left)
