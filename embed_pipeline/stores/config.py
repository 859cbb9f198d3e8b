"""What wiring hands to a backend: plain values, so that a backend never sees the settings."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from embed_pipeline.domain.check import CheckResult
from embed_pipeline.domain.entity import EntityMapping
from embed_pipeline.domain.policy import QueuePolicy
from embed_pipeline.domain.window import RateLimit
from embed_pipeline.ports.clock import Clock
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.ports.rate_limiter import RateLimiter


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Where a database server is reached."""

    uri: str
    user: str
    password: str = field(repr=False)
    database: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreConfig:
    """`queue` and `graph` are there for a backend with servers, `home` for one with files."""

    home: Path
    policy: QueuePolicy
    mapping: EntityMapping
    queue: Server | None = None
    graph: Server | None = None
    clock: Clock | None = None
    """None: the database's own clock."""
    fail_fast: bool = False
    """Whether a server is given up soon: for a look that is made again in seconds."""


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

    def initialise(self, config: StoreConfig) -> list[str]:
        """Make what the stores need, again if need be; a sentence per database touched."""

    def diagnose(self, config: StoreConfig) -> list[CheckResult]:
        """Look at each database: reached, prepared, of a version that works. Changes nothing."""
