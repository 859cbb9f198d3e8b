"""docs/mcp.md: all tools for agents, from their schemas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from embed_pipeline.interfaces.mcp.tool import AgentTool, schema_of
from embed_pipeline.interfaces.mcp.tools import TOOLS

Schema = Mapping[str, Any]

_PREFACE = """\
# Tools for agents (MCP)

`embed-pipeline mcp` is a server of the Model Context Protocol on stdin and stdout. Assistants and
agents that speak it can create entities, search by meaning, and find out why something is not
found. It uses the same settings, stores and rules as the command line, and it only queues: workers
run elsewhere (`make dev`, or `embed-pipeline run`). It needs the extra `mcp`, which `make install`
brings along: `pip install 'embed-pipeline[mcp]'`.

## In a client's configuration

Most clients take this form. Write your own paths: clients start the server in a folder of
their choice, so `EMBED_HOME` has to be absolute, and a `.env` file is found only there.

```json
{
  "mcpServers": {
    "embed-pipeline": {
      "command": "/path/to/embed_pipeline/.venv/bin/embed-pipeline",
      "args": ["mcp"],
      "env": {
        "EMBED_HOME": "/path/to/embed_pipeline/.embed_pipeline"
      }
    }
  }
}
```

Every other variable of the [configuration](configuration.md) can stand beside `EMBED_HOME`. The
databases may be down when the server starts: a tool says so when it is called.

## What to expect

- An answer is a sentence, the facts as JSON text, and the same as structured content.
- An error is a sentence that says what to do: correct the call, try later, or ask a person.
  Unknown arguments are refused, so that a misspelt name never becomes a batch repair.
- A `limit` below 1 is refused, one above 1000 is capped, and the answer says so.
- Logs go to stderr. The server ends when the client hangs up, and on Ctrl-C or SIGTERM: calls that
  run are finished, then the stores are closed.
"""


def mcp_markdown() -> str:
    return "\n".join([_PREFACE, *(_section(tool) for tool in TOOLS.values())])


def _section(tool: AgentTool[Any]) -> str:
    kind = "Changes data." if tool.changes else "Only reads."
    parts = [f"## `{tool.name}`\n", f"{tool.description} {kind}\n"]
    for title, shape in (("Argument", tool.arguments), ("Answer", tool.answer)):
        schema = schema_of(shape)
        rows = list(_rows(schema, schema.get("$defs", {}), asked=title == "Argument"))
        if rows:
            parts += [f"| {title} | Type | Meaning |", "|---|---|---|", *rows, ""]
    return "\n".join(parts)


def _rows(schema: Schema, named: Schema, *, asked: bool, under: str = "") -> Iterator[str]:
    """A line per field; the fields of a list's items follow it. Of what is asked, some is due."""
    for name, field in schema.get("properties", {}).items():
        default = field.get("default")
        told = field["description"]
        if default not in (None, "", [], {}):
            told += f" Default: {default}."
        if asked and name in schema.get("required", ()):
            told += " Required."
        yield f"| `{under}{name}` | {_type(field, named)} | {told} |"
        items = _resolved(field.get("items", {}), named)
        yield from _rows(items, named, asked=asked, under=f"{under}{name}[].")


def _type(field: Schema, named: Schema) -> str:
    field = _resolved(field, named)
    if "anyOf" in field:
        return " or ".join(_type(option, named) for option in field["anyOf"])
    if "enum" in field:
        return "one of " + ", ".join(f"`{value}`" for value in field["enum"])
    match field["type"]:
        case "array":
            return f"list of {_type(field['items'], named)}{_bounds(field, 'Items')}"
        case "object" if "additionalProperties" in field and "properties" not in field:
            return f"object of {_type(field['additionalProperties'], named)}"
        case kind:
            return f"{kind}{_bounds(field, 'imum')}"


def _bounds(field: Schema, suffix: str) -> str:
    least, most = field.get(f"min{suffix}"), field.get(f"max{suffix}")
    if least is not None and most is not None:
        return f", {least} to {most}"
    return "" if least is None else f", at least {least}"


def _resolved(field: Schema, named: Schema) -> Schema:
    reference = field.get("$ref")
    return field if reference is None else named[reference.rpartition("/")[2]]
