"""The Python API, for services that create entities themselves: open once, use it, close it.

    from embed_pipeline.api import NewEntity, open_pipeline

    with open_pipeline() as pipeline:
        pipeline.upsert_entities([NewEntity(name="Zeer pot", entity_type="Invention")])

Creating takes milliseconds and calls no provider: it stores the entities and queues one job for
each. A worker embeds them: Dagster, or `embed-pipeline run`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from embed_pipeline import wiring
from embed_pipeline.domain import embedding
from embed_pipeline.domain.diagnosis import Diagnosis as Finding
from embed_pipeline.domain.diagnosis import Reason, Remedy
from embed_pipeline.domain.embedding import Created, Hit
from embed_pipeline.domain.entity import Entity, NewEntity
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.domain.partition import Coverage
from embed_pipeline.settings import Settings, load_settings
from embed_pipeline.usecases.entities import audit as audit_use_case
from embed_pipeline.usecases.entities import create as create_use_case
from embed_pipeline.usecases.entities import erase as erase_use_case
from embed_pipeline.usecases.entities import refresh as refresh_use_case
from embed_pipeline.usecases.entities.audit import AuditReport
from embed_pipeline.usecases.entities.create import CreateReport
from embed_pipeline.usecases.entities.embedded import embedded_entities
from embed_pipeline.usecases.entities.erase import EraseReport
from embed_pipeline.usecases.entities.refresh import RefreshReport
from embed_pipeline.usecases.files.columns import ColumnChoice
from embed_pipeline.usecases.files.frames import load_frame
from embed_pipeline.usecases.files.load import LoadReport
from embed_pipeline.usecases.insight import search as search_use_case
from embed_pipeline.usecases.insight import text as text_use_case
from embed_pipeline.usecases.insight import why as why_use_case
from embed_pipeline.usecases.insight.coverage import quick_coverage
from embed_pipeline.usecases.insight.text import EntityText, Preview
from embed_pipeline.worker.context import Services

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]  # imported where it is needed: it takes a second

__all__ = [
    "AuditReport",
    "Coverage",
    "CreateReport",
    "Created",
    "Entity",
    "EntityText",
    "EntityUid",
    "EraseReport",
    "Finding",
    "Hit",
    "LoadReport",
    "NewEntity",
    "Pipeline",
    "Preview",
    "Reason",
    "RefreshReport",
    "Remedy",
    "SearchResult",
    "open_pipeline",
]


@dataclass(frozen=True, kw_only=True)
class SearchResult(embedding.SearchResult):
    """Hits, best first; `searchable` of the `entities` that have a text have a vector."""

    def to_frame(self) -> pd.DataFrame:
        """A row for each hit: score, name, type, key and text."""
        import pandas as pd

        columns = ("score", "name", "type", "key", "text")
        rows = [
            (hit.score, hit.entity.name, hit.entity.entity_type, hit.entity.uid, hit.entity.text)
            for hit in self.hits
        ]
        return pd.DataFrame(rows, columns=list(columns))


def open_pipeline(settings: Settings | Mapping[str, str] | None = None) -> Pipeline:
    """Uses the environment and `.env`, or only the variables given here.

    Raises ConfigurationError with all problems. Connects at the first call.
    """
    if not isinstance(settings, Settings):
        settings = load_settings(settings)
    return Pipeline(wiring.open_services(settings))


class Pipeline:
    """The stores and the provider of one process. Threads can share it.

    Errors are those of `embed_pipeline.errors`. A RequestError says what is wrong with the
    arguments; nothing was changed then.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._open = ExitStack()
        self._open.callback(services.close)

    def create_entities(self, entities: Sequence[NewEntity]) -> CreateReport:
        """Store new entities and queue one job for each; existing ones are reported, not changed.

        If the queue is unreachable, `queued` is false in the report: the entities are stored,
        and discovery queues them later.
        """
        services = self._services
        return create_use_case.create_entities(
            services.jobs, services.graph, entities, model=services.model
        )

    def upsert_entities(self, entities: Sequence[NewEntity]) -> CreateReport:
        """Store new entities and changes; each new or changed text queues one job."""
        services = self._services
        return create_use_case.upsert_entities(
            services.jobs, services.graph, entities, model=services.model
        )

    def upsert_frame(
        self,
        frame: pd.DataFrame,
        *,
        name: str | None = None,
        text: Sequence[str] = (),
        entity_type: str | None = None,
        key: str | None = None,
        collection: str | None = None,
    ) -> LoadReport:
        """Store new and changed entities of a DataFrame, as `embed-pipeline load` does of a file.

        Arguments name columns; those left out are named as the mapped properties. The columns of
        `text` become the observations, in order. Other columns are ignored.
        """
        columns = ColumnChoice(
            name=name, entity_type=entity_type, key=key, text=tuple(text), collection=collection
        )
        return load_frame(self._services, frame, columns)

    def delete_entities(self, uids: Sequence[EntityUid]) -> tuple[EntityUid, ...]:
        """Soft-delete: they keep their vectors, but no search finds them. Returns those deleted."""
        return self._services.graph.soft_delete(uids)

    def refresh(self, names: Iterable[str]) -> RefreshReport:
        """Queue those of the named entities whose text has changed, however it was written.

        A name is a key, or an exact name if no entity has that key. Works in pages of 500.
        """
        return refresh_use_case.refresh(self._services, names)

    def erase(self, key: EntityUid, *, delete: bool = False) -> EraseReport:
        """Remove vectors, labels and jobs of one entity, which is never embedded again.

        `delete` removes the entity itself too. `left` of the report names what was found of it
        afterwards, `out_of_reach` what other programs may keep.
        """
        return erase_use_case.erase(self._services, key, delete=delete)

    def search(
        self, query: str, *, limit: int = 10, entity_type: str | None = None
    ) -> SearchResult:
        """The nearest entities by meaning, and how many can be found at all.

        Scores are cosine similarities, from -1 to 1. Sends one request to the provider, within
        the budget that all workers share.
        """
        found = search_use_case.search(self._services, query, limit=limit, entity_type=entity_type)
        return SearchResult(hits=found.hits, searchable=found.searchable, entities=found.entities)

    def why(self, name: str | None = None, *, key: EntityUid | None = None) -> tuple[Finding, ...]:
        """Why an entity cannot be found, or when it will be; one finding for each namesake."""
        return why_use_case.why(self._services, name=name, key=key)

    def text(self, name: str | None = None, *, key: EntityUid | None = None) -> EntityText:
        """The text of an entity exactly as it is embedded, with its tokens; sends nothing."""
        return text_use_case.text_of(self._services, name=name, key=key)

    def preview(self, *, limit: int = 5) -> Preview:
        """The first texts by key as they would be embedded, at most 100; sends nothing."""
        return text_use_case.preview(self._services, limit=limit)

    def coverage(self) -> Coverage:
        """From counts, in milliseconds at any size, and what the last complete audit found."""
        return quick_coverage(self._services)

    def entities_frame(self, *, entity_type: str | None = None) -> pd.DataFrame:
        """The valid entities with their vectors: key, name, type, text and embedding.

        `embedding` is a numpy array, or None while the text has no vector. Reads the whole graph
        into memory: 10 000 vectors with 1 536 dimensions take 60 MB.
        """
        import pandas as pd

        columns = ("key", "name", "type", "text", "embedding")
        rows = [
            (entity.uid, entity.name, entity.entity_type, entity.text, vector)
            for entity, vector in embedded_entities(self._services, entity_type=entity_type)
        ]
        return pd.DataFrame(rows, columns=list(columns))

    def coverage_frame(self) -> pd.DataFrame:
        """The counts of `coverage` as a table of one row, with model and percent."""
        import pandas as pd

        counted = self.coverage()
        counts = {name: n for name, n in asdict(counted).items() if isinstance(n, int)}
        row = {"model": self._services.model, **counts, "percent": counted.percent}
        return pd.DataFrame([row])

    def audit(self) -> AuditReport:
        """Compare every entity with its vector, and mark what other programs changed.

        Reads the whole graph. Discovery queues what is marked.
        """
        return audit_use_case.audit(self._services)

    def close(self) -> None:
        """Close connections and files; calling it again does nothing."""
        self._open.close()

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
