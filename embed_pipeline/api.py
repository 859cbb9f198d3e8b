"""For services that create entities themselves: open once, create and search, close.

    from embed_pipeline.api import NewEntity, open_pipeline

    with open_pipeline() as pipeline:
        pipeline.upsert_entities([NewEntity(name="Zeer pot", entity_type="Invention")])

Creating takes milliseconds and calls no provider: the entities are stored and one job each is
queued. A worker embeds them: Dagster's sensor, or `embed-pipeline run`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from types import TracebackType

from embed_pipeline import wiring
from embed_pipeline.domain.diagnosis import Diagnosis as Finding
from embed_pipeline.domain.diagnosis import Reason, Remedy
from embed_pipeline.domain.embedding import Coverage, Created, Hit, SearchResult
from embed_pipeline.domain.entity import Entity, NewEntity
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.settings import Settings, load_settings
from embed_pipeline.usecases.entities import create as creating
from embed_pipeline.usecases.entities.create import CreateReport
from embed_pipeline.usecases.insight import search as searching
from embed_pipeline.usecases.insight import why as asking
from embed_pipeline.worker.context import Services

__all__ = [
    "Coverage",
    "CreateReport",
    "Created",
    "Entity",
    "EntityUid",
    "Finding",
    "Hit",
    "NewEntity",
    "Pipeline",
    "Reason",
    "Remedy",
    "SearchResult",
    "open_pipeline",
]


def open_pipeline(settings: Settings | Mapping[str, str] | None = None) -> Pipeline:
    """By the environment and `.env`, or by variables given here and no others.

    Raises ConfigurationError with all that is wrong. Nothing is connected before the first call.
    """
    if not isinstance(settings, Settings):
        settings = load_settings(settings)
    return Pipeline(wiring.open_services(settings))


class Pipeline:
    """The stores and the provider of one process, shared by its threads.

    Errors are those of `embed_pipeline.errors`: a RequestError says what is wrong with the
    arguments, and then nothing was changed.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._parts = ExitStack()
        for part in (services.jobs, services.graph, services.provider, services.limiter):
            self._parts.enter_context(closing(part))

    def create_entities(self, entities: Sequence[NewEntity]) -> CreateReport:
        """Store new ones and queue one job each; one that exists is reported and left as it is.

        While the queue cannot be reached, `queued` is false in the answer: the entities are
        stored, and discovery queues them later.
        """
        services = self._services
        return creating.create_entities(
            services.jobs, services.graph, entities, model=services.model
        )

    def upsert_entities(self, entities: Sequence[NewEntity]) -> CreateReport:
        """Store new ones and changes; each changed text queues one job, an unchanged one none."""
        services = self._services
        return creating.upsert_entities(
            services.jobs, services.graph, entities, model=services.model
        )

    def delete_entities(self, uids: Sequence[EntityUid]) -> tuple[EntityUid, ...]:
        """Softly: they keep their vectors, but no search finds them; those that were valid."""
        return self._services.graph.soft_delete(uids)

    def search(
        self, query: str, *, limit: int = 10, entity_type: str | None = None
    ) -> SearchResult:
        """The nearest entities by meaning; the answer says how many can be found at all.

        One request to the provider, within the budget that all workers share.
        """
        return searching.search(self._services, query, limit=limit, entity_type=entity_type)

    def why(self, name: str | None = None, *, key: EntityUid | None = None) -> tuple[Finding, ...]:
        """Why an entity cannot be found, or when it will be; one finding for each of that name."""
        return asking.why(self._services, name=name, key=key)

    def coverage(self) -> Coverage:
        """Counted over the whole graph: for reports, not for every request."""
        return self._services.graph.coverage(model=self._services.model)

    def close(self) -> None:
        """Gives connections and files back; calling it again does nothing."""
        self._parts.close()

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
