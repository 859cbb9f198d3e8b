"""Everything that can be set from outside; the only reader of the environment."""

from __future__ import annotations

from embed_pipeline.settings.load import load_settings
from embed_pipeline.settings.shape import (
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
