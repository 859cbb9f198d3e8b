"""How a group of variables is declared and read, one by one; joint rules are the group's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from embed_pipeline.settings.findings import Findings
from embed_pipeline.settings.kinds import Kind
from embed_pipeline.telemetry.redaction import redact

_LONGEST_ECHO = 80


class Variables(BaseSettings):
    """Base of the groups. Values come only through `parse`, never from the process around it."""

    model_config = SettingsConfigDict(
        frozen=True, extra="ignore", validate_default=False, hide_input_in_errors=True
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings,)


V = TypeVar("V", bound=Variables)


def setting(variable: str, meaning: str, *, default: object = None, shown: str = "") -> Any:
    """A field read from `variable`; `shown` words a default that depends on something."""
    return Field(default, validation_alias=variable, title=meaning, description=shown or None)


def parse(group: type[V], environ: Mapping[str, str], findings: Findings) -> V:
    """The group's values; a bad one is reported and replaced by its default to judge the rest."""
    fields = fields_by_variable(group)
    given = {variable: environ[variable] for variable in fields if variable in environ}
    try:
        return group(**given)
    except ValidationError as error:
        bad = {str(problem["loc"][0]) for problem in error.errors(include_input=False)}
    for variable in sorted(bad, key=list(fields).index):
        kind = kind_of(fields[variable])
        got = f", got {_shortened(given[variable])}" if kind.echo else ""
        findings.refuse(variable, f"be {kind.allowed}{got}")
    return group(**{name: text for name, text in given.items() if name not in bad})


def fields_by_variable(group: type[Variables]) -> dict[str, FieldInfo]:
    fields = group.model_fields.values()
    return {str(field.validation_alias): field for field in fields if field.validation_alias}


def kind_of(field: FieldInfo) -> Kind:
    return next(kind for kind in field.metadata if isinstance(kind, Kind))


def _shortened(text: str) -> str:
    text = redact(text)  # a secret may have been put into the wrong variable
    return repr(text if len(text) <= _LONGEST_ECHO else text[:_LONGEST_ECHO] + "…")
