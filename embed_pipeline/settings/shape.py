"""The settings as the rest of the program sees them: checked, complete and immutable."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from pathlib import Path

from pydantic import SecretStr


class Environment(StrEnum):
    LOCAL = "local"
    TEST = "test"
    PRODUCTION = "production"


class StoreName(StrEnum):
    SQLITE = "sqlite"
    NEO4J = "neo4j"
    POSTGRES = "postgres"


GRAPH_STORES = (StoreName.SQLITE, StoreName.NEO4J)
"""PostgreSQL keeps only queues."""


class ProviderName(StrEnum):
    OPENAI = "openai"
    AZURE = "azure"
    LOCAL = "local"
    MOCK = "mock"


IN_PROCESS = frozenset({ProviderName.LOCAL, ProviderName.MOCK})
"""Providers that run in this process: free, not shared, and never asking to wait."""


class LogLevel(StrEnum):
    DEBUG = "DEBUG"
    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"


class LogFormat(StrEnum):
    AUTO = "auto"
    JSON = "json"
    TEXT = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    retention: timedelta
    recovery_interval: timedelta | None
    """None: nothing is recovered automatically."""
    lock_duration: timedelta
    heartbeat_interval: timedelta
    max_attempts: int
    max_recoveries: int
    batch_size: int
    max_runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSettings:
    """`name` is the provider that works; `requested` the one that was asked for."""

    name: ProviderName
    requested: ProviderName
    model: str
    dimensions: int
    send_dimensions: bool | None
    """None: as the model is known to need it."""
    api_key: SecretStr | None
    base_url: str | None
    deployment: str | None
    api_version: str | None
    timeout: timedelta
    max_inputs: int | None
    """Texts per request; this and the next two: None means the provider's own limit."""
    max_request_tokens: int | None
    max_input_tokens: int | None
    concurrency: int
    """Requests of one worker under way at once."""
    max_requests: int | None
    """Requests per `interval`; None means without limit."""
    max_tokens: int | None
    """API tokens per `interval`; None means without limit."""
    interval: timedelta

    @property
    def fell_back(self) -> bool:
        return self.name is not self.requested


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """A `postgresql://` URI always names its `sslmode`; only PostgreSQL has a `schema`."""

    uri: str
    user: str
    password: SecretStr
    database: str
    schema: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """SQLite has no server; the others always have one."""

    queue: StoreName
    graph: StoreName
    queue_server: ServerSettings | None = None
    graph_server: ServerSettings | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntitySettings:
    """How the graph names things; all are identifiers that need no quoting."""

    label: str
    key: str
    name: str
    entity_type: str
    text: tuple[str, ...]
    valid_to: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaperSettings:
    """Leases are by stage, with their SLA factor; `backoff_base` and its ceiling: both or none."""

    database_url: SecretStr
    interval: timedelta
    batch_size: int
    max_attempts: int
    backoff_base: timedelta | None
    backoff_ceiling: timedelta | None
    lease_clip: timedelta
    lease_asr: timedelta
    lease_burnin: timedelta
    lease_default: timedelta
    heartbeat_interval: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    level: LogLevel
    format: LogFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    environment: Environment
    home: Path
    queue: QueueSettings
    provider: ProviderSettings
    stores: StoreSettings
    entity: EntitySettings
    logging: LogSettings
    reaper: ReaperSettings | None = None
    """None: REAPER_DATABASE_URL is not set, and there is no reaper."""
    notes: tuple[str, ...] = field(default=())
    """One sentence each; entry points print or log them."""
