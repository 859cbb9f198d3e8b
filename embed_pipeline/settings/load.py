"""Puts the settings together and refuses all that is wrong with them at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from embed_pipeline.settings.entity import EntityVariables, entity_settings
from embed_pipeline.settings.findings import Findings
from embed_pipeline.settings.general import (
    GeneralVariables,
    LogVariables,
    environment_of,
    log_settings,
)
from embed_pipeline.settings.provider import ProviderVariables, provider_settings
from embed_pipeline.settings.queue import QueueVariables, queue_settings
from embed_pipeline.settings.reaper import ReaperVariables, reaper_settings
from embed_pipeline.settings.remote import AzureVariables, OpenAIVariables, Remotes
from embed_pipeline.settings.shape import Settings
from embed_pipeline.settings.sources import note_unknown_names, read_environment
from embed_pipeline.settings.stores import (
    BackendVariables,
    GraphServerVariables,
    Neo4jVariables,
    QueueServerVariables,
    store_settings,
)
from embed_pipeline.settings.variables import Variables, fields_by_variable, kind_of, parse
from embed_pipeline.telemetry.redaction import register_secret

GROUPS: Mapping[str, tuple[type[Variables], ...]] = {
    "General": (GeneralVariables,),
    "Queue": (QueueVariables,),
    "Embedding provider": (ProviderVariables, OpenAIVariables, AzureVariables),
    "Stores": (BackendVariables, QueueServerVariables, GraphServerVariables, Neo4jVariables),
    "Entities of the graph": (EntityVariables,),
    "Stuck-job reaper": (ReaperVariables,),
    "Logging": (LogVariables,),
}
FIELDS = {
    variable: field
    for groups in GROUPS.values()
    for group in groups
    for variable, field in fields_by_variable(group).items()
}


def load_settings(
    environ: Mapping[str, str] | None = None,
    *,
    dotenv: Path | None = Path(".env"),
    over: Mapping[str, str] | None = None,
) -> Settings:
    """The settings of this process, or those of `environ` and nothing else.

    `over` replaces single variables: what a person said at the command line.

    Raises ConfigurationError with every problem. Secrets are made known to the redaction first,
    so that neither a sentence nor a later log line shows one.
    """
    findings = Findings()
    if environ is None:
        environ = read_environment(dotenv, FIELDS.keys(), findings)
    environ = {**environ, **(over or {})}
    for variable, field in FIELDS.items():
        if kind_of(field).secret:
            register_secret(environ.get(variable, "").strip())
    settings = _assemble(environ, findings)
    note_unknown_names(environ, FIELDS.keys(), findings)
    findings.raise_problems()
    return replace(settings, notes=findings.notes)


def _assemble(environ: Mapping[str, str], findings: Findings) -> Settings:
    """Usable only if nothing was found wrong: defaults stand in for what was."""
    general = parse(GeneralVariables, environ, findings)
    environment = environment_of(general, findings)
    queue = queue_settings(parse(QueueVariables, environ, findings), environment, findings)
    asked = parse(ProviderVariables, environ, findings)
    remotes = Remotes(
        openai=parse(OpenAIVariables, environ, findings),
        azure=parse(AzureVariables, environ, findings),
    )
    provider = provider_settings(asked, remotes, environment, queue, findings)
    stores = store_settings(environ, environment, findings)
    return Settings(
        environment=environment,
        home=general.home,
        queue=queue,
        provider=provider,
        stores=stores,
        entity=entity_settings(parse(EntityVariables, environ, findings), stores.graph, findings),
        logging=log_settings(parse(LogVariables, environ, findings)),
        reaper=reaper_settings(environ, findings),
    )
