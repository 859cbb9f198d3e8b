"""Everything that can be set from outside; the only reader of the environment."""

from __future__ import annotations

from embed_pipeline.settings.groups.general import Environment, LogFormat, LogLevel, LogSettings
from embed_pipeline.settings.groups.profiles import IN_PROCESS, ProviderName, address_variables
from embed_pipeline.settings.groups.provider import ProviderSettings
from embed_pipeline.settings.groups.queue import QueueSettings
from embed_pipeline.settings.groups.reaper import ReaperSettings
from embed_pipeline.settings.groups.servers import ServerSettings
from embed_pipeline.settings.groups.stores import GRAPH_STORES, StoreName, StoreSettings, store_at
from embed_pipeline.settings.load import Settings, load_settings, named
from embed_pipeline.settings.parsing.addresses import endpoint_of

__all__ = [
    "GRAPH_STORES",
    "IN_PROCESS",
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
    "address_variables",
    "endpoint_of",
    "load_settings",
    "named",
    "store_at",
]
