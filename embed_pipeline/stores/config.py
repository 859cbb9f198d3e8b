"""What wiring hands to a backend: plain values, so that a backend never sees the settings."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from embed_pipeline.model.entity import EntityMapping
from embed_pipeline.model.policy import QueuePolicy
from embed_pipeline.model.window import RateLimit
from embed_pipeline.ports.clock import Clock
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.ports.rate_limiter import RateLimiter


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreConfig:
    home: Path
    policy: QueuePolicy
    mapping: EntityMapping
    clock: Clock | None = None
    """None: the database's own clock."""


class Queue(Protocol):
    """One opened queue: its jobs, and the budgets that are kept beside them."""

    @property
    @abstractmethod
    def jobs(self) -> JobStore: ...

    @abstractmethod
    def limiter(self, *, provider: str, limit: RateLimit) -> RateLimiter: ...


class Backend(Protocol):
    """What the module of a backend offers."""

    def open_queue(self, config: StoreConfig) -> Queue: ...

    def open_graph(self, config: StoreConfig) -> EntityStore: ...
