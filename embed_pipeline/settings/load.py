"""Puts the settings together and refuses all that is wrong with them at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from embed_pipeline.domain.collection import Collection
from embed_pipeline.errors import ConfigurationError
from embed_pipeline.settings.groups.collections import CollectionSettings, collections_of
from embed_pipeline.settings.groups.entity import EntitySettings
from embed_pipeline.settings.groups.general import (
    NAME,
    Environment,
    GeneralSettings,
    LogSettings,
    McpSettings,
    general_settings,
)
from embed_pipeline.settings.groups.profiles import ACCESS
from embed_pipeline.settings.groups.provider import ProviderSettings, provider_settings
from embed_pipeline.settings.groups.queue import QueueSettings, queue_settings
from embed_pipeline.settings.groups.reaper import ReaperSettings, reaper_settings
from embed_pipeline.settings.groups.stores import (
    GraphServer,
    Neo4jServer,
    QueueServer,
    StoreSettings,
    store_settings,
)
from embed_pipeline.settings.parsing.sources import (
    FILE_SUFFIX,
    note_unknown_names,
    read_environment,
    with_secret_files,
)
from embed_pipeline.settings.parsing.variables import Findings, Setting, parse, settings_of
from embed_pipeline.telemetry.redaction import register_secret

GROUPS: Mapping[str, tuple[type, ...]] = {
    "General": (GeneralSettings,),
    "Queue": (QueueSettings,),
    "Embedding provider": (ProviderSettings, *ACCESS.values()),
    "Stores": (StoreSettings, QueueServer, GraphServer, Neo4jServer),
    "Entities of the graph": (CollectionSettings, EntitySettings),
    "Stuck-job reaper": (ReaperSettings,),
    "Agents over HTTP": (McpSettings,),
    "Logging": (LogSettings,),
}
"""In the order of the documentation."""

DECLARED: Mapping[str, Setting] = {
    declared.variable: declared
    for groups in GROUPS.values()
    for group in groups
    for declared in settings_of(group).values()
}
SECRETS = tuple(variable for variable, declared in DECLARED.items() if declared.kind.secret)
KNOWN = DECLARED.keys() | {secret + FILE_SUFFIX for secret in SECRETS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings as the rest of the program sees them: checked, complete and immutable."""

    environment: Environment
    home: Path
    queue: QueueSettings
    provider: ProviderSettings
    stores: StoreSettings
    collections: tuple[Collection, ...]
    """Of the file, or the environment's single one; in the order of the file."""
    logging: LogSettings
    mcp: McpSettings
    name: str = ""
    """The prefix of everything that Dagster shows; empty without one."""
    reaper: ReaperSettings | None = None
    """None: REAPER_DATABASE_URL is not set, and there is no reaper."""
    notes: tuple[str, ...] = ()
    """One sentence each; entry points print or log them."""


def load_settings(
    environ: Mapping[str, str] | None = None,
    *,
    dotenv: Path | None = Path(".env"),
    over: Mapping[str, str] | None = None,
) -> Settings:
    """The settings of this process, or those of `environ` and nothing else.

    `over` replaces single variables, for options of the command line.

    Raises ConfigurationError with every problem. Secrets are registered with the redaction first,
    so that neither a sentence nor a later log line shows one.
    """
    findings = Findings()
    if environ is None:
        environ = read_environment(dotenv, KNOWN, findings)
    environ = with_secret_files({**environ, **(over or {})}, SECRETS, findings)
    for variable in SECRETS:
        register_secret(environ.get(variable, "").strip())
    settings = _assemble(environ, findings)
    note_unknown_names(environ, KNOWN, findings)
    findings.raise_problems()
    return replace(settings, notes=findings.notes)


def named(settings: Settings, name: str) -> Settings:
    """The same settings under another EMBED_NAME."""
    try:
        return replace(settings, name=NAME.parse(name))
    except ValueError:
        raise ConfigurationError([f"name must be {NAME.allowed}, got {name!r}"]) from None


def _assemble(environ: Mapping[str, str], findings: Findings) -> Settings:
    """Usable only if nothing was refused: defaults stand in for what was."""
    general = general_settings(environ, findings)
    queue = queue_settings(environ, general.environment, findings)
    provider = provider_settings(environ, general.environment, queue, findings)
    stores = store_settings(environ, general.environment, findings)
    return Settings(
        environment=general.environment,
        home=general.home,
        name=general.name or "",
        queue=queue,
        provider=provider,
        stores=stores,
        collections=collections_of(environ, stores.graph, findings),
        logging=parse(LogSettings, environ, findings),
        mcp=parse(McpSettings, environ, findings),
        reaper=reaper_settings(environ, findings),
    )
