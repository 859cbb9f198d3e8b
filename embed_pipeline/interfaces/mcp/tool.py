"""A tool: a name, a description for the model, a schema for input and output, and a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

from mcp.types import Tool as ListedTool
from mcp.types import ToolAnnotations
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.json_schema import GenerateJsonSchema

from embed_pipeline.errors import RequestError
from embed_pipeline.worker.context import Services

LONGEST_QUOTE = 60


class Shape(BaseModel):
    """A field's docstring is its description in the schema."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class Arguments(Shape):
    """A misspelt argument is refused: without its name, a force would become a batch repair."""

    @model_validator(mode="before")
    @classmethod
    def null_is_absent(cls, given: Any) -> Any:
        """Models fill in every argument they see, with null for those they do not use."""
        if not isinstance(given, Mapping):
            return given
        return {name: value for name, value in given.items() if value is not None}


class Answer(Shape):
    message: str = Field()
    """What was found or done, in a sentence or two."""


Limit = Annotated[int, Field(ge=1, strict=True)]
"""Strict, because pydantic would otherwise take true as 1 and "5" as 5."""


ArgumentsT = TypeVar("ArgumentsT", bound=Arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTool(Generic[ArgumentsT]):
    name: str
    title: str
    description: str
    arguments: type[ArgumentsT]
    answer: type[Answer]
    run: Callable[[Services, ArgumentsT], Answer]
    """Blocks; the server calls it in a thread."""
    changes: bool = False
    overwrites: bool = False
    """It changes or deletes what was there before."""
    repeatable: bool = True
    """A second call with the same arguments changes nothing more."""
    sends_query: bool = False
    """The embedding provider gets text from the arguments."""

    def call(self, services: Services, given: Mapping[str, Any]) -> Answer:
        return self.run(services, self._validated(given))

    def listed(self, *, queries_leave: bool = False) -> ListedTool:
        """`queries_leave`: the provider is not in this process but somewhere on the network."""
        return ListedTool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=schema_of(self.arguments),
            output_schema=schema_of(self.answer),
            annotations=ToolAnnotations(
                read_only_hint=not self.changes,
                destructive_hint=self.overwrites,
                idempotent_hint=self.repeatable,
                open_world_hint=self.sends_query and queries_leave,
            ),
        )

    def _validated(self, given: Mapping[str, Any]) -> ArgumentsT:
        try:
            return self.arguments.model_validate(given)
        except ValidationError as error:
            known = ", ".join(self.arguments.model_fields) or "none"
            raise RequestError(
                f"Nothing was done: {_problems(error)}. {self.name} takes: {known}."
            ) from error


class _PlainSchema(GenerateJsonSchema):
    """Without titles, which only repeat the names of the fields."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def schema_of(shape: type[Shape]) -> dict[str, Any]:
    schema = shape.model_json_schema(schema_generator=_PlainSchema)
    for part in (schema, *schema.get("$defs", {}).values()):
        # The name and docstring of the class are for programmers.
        part.pop("title", None)
        part.pop("description", None)
    return schema


def _problems(error: ValidationError) -> str:
    return "; ".join(
        _problem(one["loc"], one["msg"], one["type"], one["input"]) for one in error.errors()
    )


def _problem(where: tuple[int | str, ...], message: str, kind: str, given: object) -> str:
    place = ".".join(str(step) for step in where) or "the arguments"
    sentence = f"{place}: {message[0].lower()}{message[1:]}"
    return sentence if kind == "missing" else f"{sentence}, got {_quote(given)}"


def _quote(value: object) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_QUOTE else text[: LONGEST_QUOTE - 1] + "…"
