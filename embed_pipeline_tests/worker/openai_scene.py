"""The worker's world with the real OpenAI client, on a server that fails as OpenAI does."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import SecretStr

from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.domain.recipe import version_of
from embed_pipeline.domain.window import RateLimit
from embed_pipeline.providers import open_provider
from embed_pipeline.settings import ProviderName, ProviderSettings
from embed_pipeline.stores.queue.rate_limiter import SharedRateLimiter
from embed_pipeline.usecases.entities.create import CreateReport, create_entities
from embed_pipeline.worker.context import Services
from embed_pipeline_tests.clocks import MINUTE, FakeClock
from embed_pipeline_tests.openai_server import OpenAIServer, vector_for
from embed_pipeline_tests.worker.scene import World

__all__ = ["DIMENSIONS", "OpenAIWorld", "running_server", "server"]

KEY = "key-of-the-worker-tests"
DIMENSIONS = 16


@pytest.fixture(scope="module")
def running_server() -> Iterator[OpenAIServer]:
    with pytest.MonkeyPatch.context() as monkeypatch, OpenAIServer(api_key=KEY) as opened:
        for name in list(os.environ):
            if name.lower().endswith("_proxy") or name.startswith("OPENAI_"):
                monkeypatch.delenv(name)
        yield opened


@pytest.fixture
def server(running_server: OpenAIServer) -> OpenAIServer:
    running_server.forget()
    running_server.fault_for = None
    return running_server


class OpenAIWorld(World):
    """The same stores, worked on by the real client."""

    def __init__(
        self,
        home: Path,
        clock: FakeClock,
        server: OpenAIServer,
        *,
        timeout: timedelta = timedelta(seconds=30),
        budget: int = 1_000,
        **settings: Any,
    ) -> None:
        super().__init__(home, clock, **settings)
        config = ProviderSettings(
            name=ProviderName.OPENAI,
            model="text-embedding-3-small",
            dimensions=DIMENSIONS,
            api_key=SecretStr(KEY),
            base_url=server.base_url,
            timeout=timeout,
        )
        limit = RateLimit(requests=budget, interval=MINUTE)
        self.services: Services = replace(
            self.services,
            provider=open_provider(config),
            limiter=SharedRateLimiter(self.jobs.database, provider="openai", limit=limit),
        )

    def create(self, *entities: NewEntity) -> CreateReport:
        return create_entities(self.jobs, self.graph, entities, model=self.services.model)

    def is_embedded(self, key: EntityUid) -> bool:
        stored, text = self.stored(key), self.text_of(key)
        return stored is not None and (
            stored[0] == version_of(text)
            and np.allclose(stored[1], vector_for(text, DIMENSIONS), atol=1e-6)
        )

    def is_noted_as_cut(self, key: EntityUid) -> bool:
        query = "SELECT truncated FROM embedding_vectors WHERE uid = :uid"
        rows = self.graph.backend.read(lambda tx: tx.all(query, uid=key))
        return bool(rows[0]["truncated"])

    def close(self) -> None:
        self.services.provider.close()
        super().close()
