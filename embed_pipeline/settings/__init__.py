"""Everything that can be set from outside; the only reader of the environment."""

from __future__ import annotations

from embed_pipeline.settings.load import load_settings
from embed_pipeline.settings.shape import (
    IN_PROCESS,
    EntitySettings,
    Environment,
    LogFormat,
    LogLevel,
    LogSettings,
    ProviderName,
    ProviderSettings,
    QueueSettings,
    ReaperSettings,
    ServerSettings,
    Settings,
    StoreName,
    StoreSettings,
)

__all__ = [
    "IN_PROCESS",
    "EntitySettings",
    "Environment",
    "LogFormat",
    "LogLevel",
    "LogSettings",
    "ProviderName",
    "ProviderSettings",
    "QueueSettings",
    "ReaperSettings",
    "ServerSettings",
    "Settings",
    "StoreName",
    "StoreSettings",
    "load_settings",
]
