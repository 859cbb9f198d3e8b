"""How the graph that people have already names its entities' label and properties."""

from __future__ import annotations

from typing import Annotated

from embed_pipeline.settings.findings import Findings
from embed_pipeline.settings.kinds import Identifier, Identifiers
from embed_pipeline.settings.shape import EntitySettings
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


def entity_settings(given: EntityVariables, findings: Findings) -> EntitySettings:
    others = (given.key, given.name, given.entity_type, *given.text)
    if given.valid_to.lower() in {other.lower() for other in others}:
        findings.refuse(
            "EMBED_ENTITY_VALID_TO",
            f"be another property than key, name, type and texts, got {given.valid_to!r}",
        )
    return EntitySettings(
        label=given.label,
        key=given.key,
        name=given.name,
        entity_type=given.entity_type,
        text=given.text,
        valid_to=given.valid_to,
    )
