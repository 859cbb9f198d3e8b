"""How an existing graph names the label and the properties of its entities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from embed_pipeline.domain import reserved_names as reserved
from embed_pipeline.domain.collection import Collection
from embed_pipeline.settings.groups.stores import StoreName
from embed_pipeline.settings.parsing.kinds import IDENTIFIER, IDENTIFIERS
from embed_pipeline.settings.parsing.variables import Findings, parse, setting, settings_of


@dataclass(frozen=True, slots=True, kw_only=True)
class EntitySettings:
    label: str = setting(
        "EMBED_ENTITY_LABEL", IDENTIFIER, "The label of entities.", default="Entity"
    )
    key: str = setting(
        "EMBED_ENTITY_KEY", IDENTIFIER, "The property that identifies an entity.", default="uid"
    )
    name_property: str = setting(
        "EMBED_ENTITY_NAME", IDENTIFIER, "The property with its name.", default="name"
    )
    type_property: str = setting(
        "EMBED_ENTITY_TYPE", IDENTIFIER, "The property with its type.", default="entityType"
    )
    text: tuple[str, ...] = setting(
        "EMBED_ENTITY_TEXT",
        IDENTIFIERS,
        "The properties that make the text to embed, in order.",
        default="name,entityType,observations",
    )
    valid_to: str = setting(
        "EMBED_ENTITY_VALID_TO",
        IDENTIFIER,
        "The property with the end of its validity; an entity without it is valid.",
        default="validTo",
    )
    changed_at: str | None = setting(
        "EMBED_CHANGED_AT",
        IDENTIFIER,
        "A property with the time of an entity's last change (datetime, or integer milliseconds)."
        " Changes of other programs are then found within seconds. Only for a graph in Neo4j.",
    )


RESERVED = {StoreName.NEO4J: reserved.NEO4J, StoreName.SQLITE: reserved.SQLITE}


def environment_collection(
    environ: Mapping[str, str], store: StoreName, findings: Findings
) -> Collection:
    """A mapping that the graph's store cannot use is refused before anything is launched."""
    mapping = Collection(**asdict(parse(EntitySettings, environ, findings)))
    variables = {role: one.variable for role, one in settings_of(EntitySettings).items()}
    if findings.accepted(*variables.values()):
        for role, must in reserved.misfits(mapping, RESERVED[store]):
            findings.refuse(variables[role], must)
    if mapping.changed_at and store is not StoreName.NEO4J:
        findings.refuse("EMBED_CHANGED_AT", "be unset: only a graph in Neo4j has other writers")
    return mapping
