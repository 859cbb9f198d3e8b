"""How the graph that people have already names its entities' label and properties."""

from __future__ import annotations

from typing import Annotated

from embed_pipeline.domain import reserved_names as reserved
from embed_pipeline.settings.findings import Findings
from embed_pipeline.settings.kinds import Identifier, Identifiers
from embed_pipeline.settings.shape import EntitySettings, StoreName
from embed_pipeline.settings.variables import Variables, setting

Property = Annotated[str, Identifier()]


class EntityVariables(Variables):
    label: Property = setting("EMBED_ENTITY_LABEL", "The label of entities.", default="Entity")
    key: Property = setting("EMBED_ENTITY_KEY", "The property that identifies one.", default="uid")
    name: Property = setting("EMBED_ENTITY_NAME", "The property with its name.", default="name")
    entity_type: Property = setting(
        "EMBED_ENTITY_TYPE", "The property with its type.", default="entityType"
    )
    text: Annotated[tuple[str, ...], Identifiers()] = setting(
        "EMBED_ENTITY_TEXT",
        "The properties that make the text to embed, in order.",
        default=("name", "entityType", "observations"),
    )
    valid_to: Property = setting(
        "EMBED_ENTITY_VALID_TO",
        "The property with the end of its validity; an entity without it is valid.",
        default="validTo",
    )


_VARIABLES = {
    role: str(field.validation_alias) for role, field in EntityVariables.model_fields.items()
}
_RESERVED = {StoreName.NEO4J: reserved.NEO4J, StoreName.SQLITE: reserved.SQLITE}


def entity_settings(
    given: EntityVariables, backend: StoreName, findings: Findings
) -> EntitySettings:
    settings = EntitySettings(
        label=given.label,
        key=given.key,
        name=given.name,
        entity_type=given.entity_type,
        text=given.text,
        valid_to=given.valid_to,
    )
    if findings.sound(*_VARIABLES.values()):
        for role, must in reserved.misfits(settings, _RESERVED[backend]):
            findings.refuse(_VARIABLES[role], must)
    return settings
