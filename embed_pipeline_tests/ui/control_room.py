"""A real Dagster on SQLite, and a loopback server that speaks OpenAI's protocol beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from embed_pipeline import wiring
from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.settings import load_settings
from embed_pipeline.usecases.entities.create import create_entities
from embed_pipeline.worker.context import Services
from embed_pipeline_tests.defs.commands import Homes
from embed_pipeline_tests.defs.dev_server import DevServer, dev_server, within
from embed_pipeline_tests.openai_server import OpenAIServer

MOST_INPUTS = 50
"""Texts per request: few, so that a run sends many requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlRoom:
    dagster: DevServer
    openai: OpenAIServer
    services: Services

    def create(self, *names: str) -> None:
        entities = [NewEntity(name=name, entity_type="Thing") for name in names]
        create_entities(
            self.services.jobs, self.services.graph, entities, model=self.services.model
        )

    def succeed(self, job: str) -> None:
        run = self.dagster.launch(job)
        within(60, lambda: self.dagster.status_of(run) == "SUCCESS")

    def path(self, *parts: str) -> str:
        return "/".join([self.dagster.url, *parts])

    def job(self, name: str, *parts: str) -> str:
        return self.path("locations", "embed_pipeline", "jobs", name, *parts)


@contextmanager
def opened_control_room(folder: Path) -> Iterator[ControlRoom]:
    """Sensors are off, as everywhere in tests: a run starts when a test starts it."""
    homes = Homes.below(folder)
    with OpenAIServer(api_key="sk-loopback") as openai:
        variables = {
            "EMBED_ENV": "test",
            "EMBEDDING_PROVIDER": "openai",
            "OPENAI_API_KEY": "sk-loopback",
            "OPENAI_BASE_URL": openai.base_url,
            "EMBEDDING_RATE_LIMIT_TOKENS": "1000000",
            "EMBEDDING_MAX_INPUTS": str(MOST_INPUTS),
        }
        services = wiring.open_services(load_settings(variables | {"EMBED_HOME": str(homes.embed)}))
        with (
            closing(services.jobs),
            closing(services.graph),
            closing(services.limiter),
            dev_server(homes, **variables) as dagster,
        ):
            yield ControlRoom(dagster=dagster, openai=openai, services=services)
