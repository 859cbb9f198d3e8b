"""What wiring hands to a backend, and what the module of a backend offers.

A backend gets plain values and never reads the settings. One that keeps only queues or only graphs
offers only that half.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from embed_pipeline.domain.check import CheckResult
from embed_pipeline.domain.collection import Collection, Registered
from embed_pipeline.domain.recovery import QueuePolicy
from embed_pipeline.domain.window import RateLimit
from embed_pipeline.ports.clock import Clock
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline.ports.graph_survey import GraphSurvey
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.ports.rate_limiter import RateLimiter

OnProgress = Callable[[str, int, int], None]
"""Called during long work with what is done, how far it is, and the total."""


def unseen(what: str, done: int, total: int) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Where a database server is reached.

    A `postgresql://` URI always names its `sslmode`, and never a user, password or database.
    """

    uri: str
    user: str
    password: str = field(repr=False)
    """Empty where the server asks for none."""
    database: str
    schema: str = ""
    """PostgreSQL: the schema that holds the queue's tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreConfig:
    """`queue` and `graph` are set for a backend with servers, `home` is for one with files."""

    home: Path
    policy: QueuePolicy
    collections: tuple[Collection, ...]
    queue: Server | None = None
    graph: Server | None = None
    clock: Clock | None = None
    """None: the database's own clock."""
    fail_fast: bool = False
    """Give up on an unreachable server soon: for sensors, which poll every few seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InitOptions:
    """What `init` does to the graph beyond making what is missing."""

    rebuild_index: bool = False
    """Replace a vector index whose definition differs from the one that is wanted."""
    trigger: bool | None = None
    """Install or remove what marks changes of other programs; None leaves it as it is."""
    on_progress: OnProgress = unseen


@dataclass(frozen=True, slots=True, kw_only=True)
class UninstallOptions:
    dry_run: bool = False
    """Count, and change nothing."""
    keep_vectors: bool = False
    """Vectors stay, with the model and version that they are of."""
    on_progress: OnProgress = unseen


@dataclass(frozen=True, slots=True, kw_only=True)
class Uninstalled:
    """What was removed from a graph, or would be."""

    nodes: int = 0
    """Entities that lost our labels and properties; of a dry run one may be counted twice."""
    rules: tuple[str, ...] = ()
    """Constraints and indexes."""
    registered: int = 0
    """Nodes of our own: models, cursors and the schema's version."""
    notes: tuple[str, ...] = ()
    """What is left for a person to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A database that was reached. Two addresses of one database have the same `identity`."""

    identity: str
    place: str
    """For people."""


class Queue(Protocol):
    """One opened queue: its jobs, and the budgets that are kept beside them."""

    @property
    @abstractmethod
    def jobs(self) -> JobStore: ...

    @abstractmethod
    def limiter(self, *, provider: str, limit: RateLimit) -> RateLimiter:
        """Shares the connection of `jobs`; closing either closes both."""


class QueueBackend(Protocol):
    """The half of a backend's module that keeps a queue."""

    def open_queue(self, config: StoreConfig) -> Queue:
        """Connects on first use."""

    def locate_queue(self, config: StoreConfig) -> Location:
        """Refuse a database that holds the graph or a newer schema. Changes nothing."""

    def initialise_queue(self, config: StoreConfig) -> list[str]:
        """Create what is missing; may be repeated. A sentence for each thing worth knowing."""

    def diagnose_queue(self, config: StoreConfig) -> list[CheckResult]:
        """Reached, prepared, of a version that works? Changes nothing."""


class GraphBackend(Protocol):
    """The half of a backend's module that keeps a graph."""

    def open_graph(self, config: StoreConfig) -> EntityStore:
        """Connects on first use."""

    def locate_graph(self, config: StoreConfig) -> Location:
        """Refuse a database that holds the queue or a newer schema. Changes nothing."""

    def initialise_graph(self, config: StoreConfig, options: InitOptions) -> list[str]:
        """Create what is missing; may be repeated. A sentence for each thing worth knowing."""

    def uninstall_graph(self, config: StoreConfig, options: UninstallOptions) -> Uninstalled:
        """Remove everything that was added, and nothing of other programs. Can be run again."""

    def registered_collections(self, config: StoreConfig) -> tuple[Registered, ...]:
        """In the order of their registration, whatever the settings say."""

    def save_collections(self, config: StoreConfig, registered: Sequence[Registered]) -> None: ...

    def set_trigger(self, config: StoreConfig, *, install: bool) -> str:
        """Install or remove what marks changes of other programs at once; a sentence about it."""

    def survey_graph(self, config: StoreConfig) -> GraphSurvey:
        """What other programs keep in the graph, by samples. Changes nothing, needs no `init`."""

    def give_keys(self, config: StoreConfig, label: str) -> int:
        """Give nodes of a label that have no `uid` one; how many."""

    def diagnose_graph(self, config: StoreConfig) -> list[CheckResult]:
        """Reached, prepared, of a version that works? Changes nothing."""
