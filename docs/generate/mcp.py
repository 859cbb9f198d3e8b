"""docs/mcp.md: all tools for agents, from their schemas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from embed_pipeline.interfaces.mcp.tool import AgentTool, schema_of
from embed_pipeline.interfaces.mcp.tools import TOOLS

Schema = Mapping[str, Any]

_PREFACE = """\
# Tools for agents (MCP)

`embed-pipeline mcp` is a server of the Model Context Protocol, on stdin and stdout or over HTTP.
Assistants and agents can use it to create, change and delete entities, search by meaning, and find
out why an entity is not found. It uses the same settings, stores and rules as the command line. It
only queues: workers run elsewhere (`make dev`, or `embed-pipeline run`). It needs the extra `mcp`,
which `make install` installs: `pip install '.[mcp]'` in a checkout.

## In a client's configuration

Most clients use this form. Replace the paths by your own: clients start the server in a folder of
their choice, so `EMBED_HOME` has to be absolute, and a `.env` file is found only in that folder.

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

Every other variable of the [configuration](configuration.md) can be set beside `EMBED_HOME`. The
databases may be down when the server starts: a tool then says so when it is called.

`--read-only` leaves out every tool that changes something. `server.json` in the repository
describes the server to MCP registries.

## Over HTTP

For clients on other machines, or for several at once, one server answers over HTTP (streamable):

```console
$ export EMBED_MCP_TOKEN=$(python3 -c "import secrets; print(secrets.token_urlsafe(32))")
$ embed-pipeline mcp --http 127.0.0.1:8321
MCP at http://127.0.0.1:8321/mcp; Ctrl-C ends it.
```

Clients send the token with every request, as `Authorization: Bearer …`. `EMBED_MCP_TOKEN_FILE` can
name a file with it.

| What | Answer |
|---|---|
| no token, or a wrong one | 401 |
| called by another name than 127.0.0.1, localhost, ::1 or those of `--allow-host` | 421 |
| from a page of another origin | 403 |
| a body over 4 MiB | 413 |
| more than `--rate` requests in a minute (600) | 429 with `Retry-After` |

Other machines can reach it only encrypted. Either the server has a certificate:

```console
$ embed-pipeline mcp --http 0.0.0.0:8321 --allow-host mcp.example.org \\
    --tls-cert cert.pem --tls-key key.pem
```

or a proxy that encrypts passes requests on, and `--behind-proxy` says so. Anything else is refused
at the start. The server keeps nothing between requests, so it can be restarted, and several can
stand behind one proxy; each counts its own rate.

## Resources

| Address | JSON |
|---|---|
| `embed-pipeline://status` | what `embedding_status` answers |
| `embed-pipeline://coverage` | how many entities have a vector, from counts |
| `embed-pipeline://entity/{key}` | one entity: name, type, text, validity; key percent-encoded |

## What to expect

- An answer is a sentence, the facts as JSON text, and the same as structured content.
- An error is a sentence that says what to do: correct the call, try later, or ask a person.
  Unknown arguments are refused, so that a misspelt name never becomes a batch repair.
- A `limit` below 1 is refused. One above 1000 is capped, and the answer says so.
- With a remote embedding provider the query of `semantic_search` leaves the machine; the tool is
  then listed with `openWorldHint: true`.
- Logs go to stderr. The server ends when the client disconnects, and on Ctrl-C or SIGTERM: running
  calls are finished, then the stores are closed.
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
    """A line per field; the fields of list items follow their list."""
    for name, field in schema.get("properties", {}).items():
        default = field.get("default")
        meaning = field["description"]
        if default not in (None, "", [], {}):
            meaning += f" Default: {default}."
        if asked and name in schema.get("required", ()):
            meaning += " Required."
        yield f"| `{under}{name}` | {_type(field, named)} | {meaning} |"
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
