"""What is written about the tools is what they are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from embed_pipeline import __version__
from embed_pipeline.interfaces.mcp.server import server_for
from embed_pipeline.interfaces.mcp.tools import INSTRUCTIONS, TOOLS
from embed_pipeline.settings.load import DECLARED
from embed_pipeline.worker.context import Services
from embed_pipeline_tests.interfaces.mcp_client import ROOT, talk_to

SNAPSHOT = Path(__file__).with_name("test_mcp_schemas.json")
CHANGED = "clients see other schemas; if that is meant, write them into the snapshot"


def listed() -> dict[str, Any]:
    return {
        name: tool.listed().model_dump(mode="json", by_alias=True, exclude_none=True)
        for name, tool in TOOLS.items()
    }


def fields(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for part in (schema, *schema.get("$defs", {}).values()):
        yield from part.get("properties", {}).items()


def test_the_schemas_are_those_of_the_snapshot() -> None:
    assert listed() == json.loads(SNAPSHOT.read_text(encoding="utf-8")), CHANGED


def test_a_client_is_told_the_same(services: Services) -> None:
    with talk_to(server_for(services)) as agent:
        told = agent.tools()
        instructions = agent.client.instructions

    assert {name: tool.input_schema for name, tool in told.items()} == {
        name: tool["inputSchema"] for name, tool in listed().items()
    }
    assert instructions == INSTRUCTIONS


@pytest.mark.parametrize("name", TOOLS)
def test_every_schema_is_valid_closed_and_has_its_words(name: str) -> None:
    tool = listed()[name]

    for schema in (tool["inputSchema"], tool["outputSchema"]):
        Draft202012Validator.check_schema(schema)
        assert schema["additionalProperties"] is False
        assert [field for field, facts in fields(schema) if not facts.get("description")] == []
    assert tool["description"].endswith(".")


def test_only_tools_that_change_data_say_so() -> None:
    changing = {name for name, tool in listed().items() if not tool["annotations"]["readOnlyHint"]}

    assert changing == {
        "create_entities",
        "upsert_entities",
        "delete_entities",
        "refresh_entities",
        "force_generate_embedding",
        "retry_failed_jobs",
    }


def test_only_tools_that_overwrite_are_called_destructive() -> None:
    destructive = {
        name for name, tool in listed().items() if tool["annotations"]["destructiveHint"]
    }

    assert destructive == {"upsert_entities", "delete_entities"}


def test_only_a_search_with_a_remote_provider_leaves_the_machine() -> None:
    def open_world(*, queries_leave: bool) -> set[str]:
        listed = (tool.listed(queries_leave=queries_leave) for tool in TOOLS.values())
        return {
            tool.name for tool in listed if tool.annotations and tool.annotations.open_world_hint
        }

    assert open_world(queries_leave=True) == {"semantic_search"}
    assert open_world(queries_leave=False) == set()


def test_instructions_name_only_tools_that_exist() -> None:
    words = INSTRUCTIONS + " ".join(tool.description for tool in TOOLS.values())
    named = {word.strip("`.,:;()") for word in words.split() if "_" in word}
    arguments = {field for tool in TOOLS.values() for field in tool.arguments.model_fields}

    assert named - arguments <= TOOLS.keys()


def test_registry_file_names_this_version_and_variables_that_exist() -> None:
    described = json.loads((ROOT / "server.json").read_text(encoding="utf-8"))
    (package,) = described["packages"]
    variables = {variable["name"]: variable for variable in package["environmentVariables"]}

    assert described["version"] == package["version"] == __version__
    assert len(described["description"]) <= 100  # the registry's own limit
    assert variables.keys() <= DECLARED.keys()
    for name, variable in variables.items():
        assert variable.get("isSecret", False) is DECLARED[name].kind.secret, name
