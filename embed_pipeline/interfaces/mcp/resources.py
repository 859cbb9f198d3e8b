"""Resources: what an agent can read without calling a tool, as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from mcp import MCPError, types

from embed_pipeline.domain.job import EntityUid
from embed_pipeline.interfaces.mcp.tools.queue import STATUS
from embed_pipeline.usecases.insight.coverage import quick_coverage
from embed_pipeline.worker.context import Services

SCHEME = "embed-pipeline://"
ENTITY = f"{SCHEME}entity/"
JSON = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentResource:
    name: str
    title: str
    description: str
    read: Callable[[Services], Mapping[str, Any]]
    """Blocks; the server calls it in a thread."""

    @property
    def uri(self) -> str:
        return f"{SCHEME}{self.name}"


def _coverage(services: Services) -> Mapping[str, Any]:
    coverage = quick_coverage(services)
    return {
        "model": services.model,
        "entities": coverage.entities,
        "embedded": coverage.embedded,
        "missing": coverage.missing,
        "nothing_to_embed": coverage.nothing_to_embed,
        "excluded": coverage.excluded,
        "unseen": coverage.unseen,
        "collections": {name: one.shown() for name, one in coverage.collections.items()},
        "percent": coverage.percent,
    }


RESOURCES = (
    AgentResource(
        name="status",
        title="Status of the embeddings",
        description="What the tool embedding_status answers.",
        read=lambda services: STATUS.call(services, {}).model_dump(mode="json"),
    ),
    AgentResource(
        name="coverage",
        title="Coverage",
        description="How many entities have a vector; cheap on any graph.",
        read=_coverage,
    ),
)

TEMPLATE = types.ResourceTemplate(
    name="entity",
    title="An entity",
    uri_template=f"{ENTITY}{{key}}",
    description="One entity by its key, percent-encoded: name, type, text, whether it is valid.",
    mime_type=JSON,
)


def listed() -> list[types.Resource]:
    return [
        types.Resource(
            uri=each.uri,
            name=each.name,
            title=each.title,
            description=each.description,
            mime_type=JSON,
        )
        for each in RESOURCES
    ]


def read(services: Services, uri: str) -> types.ReadResourceResult:
    """Blocks. Raises MCPError for what is not there."""
    content = json.dumps(_content(services, uri), ensure_ascii=False)
    contents = types.TextResourceContents(uri=uri, mime_type=JSON, text=content)
    return types.ReadResourceResult(contents=[contents])


def _content(services: Services, uri: str) -> Mapping[str, Any]:
    for resource in RESOURCES:
        if uri == resource.uri:
            return resource.read(services)
    if uri.startswith(ENTITY):
        entity = services.graph.get_entity(EntityUid(unquote(uri.removeprefix(ENTITY))))
        if entity is not None:
            return {
                "key": entity.uid,
                "uri": ENTITY + quote(entity.uid, safe=""),
                "name": entity.name,
                "entity_type": entity.entity_type,
                "text": entity.text,
                "valid": entity.is_valid,
            }
    raise MCPError(types.INVALID_PARAMS, f"There is no resource {uri!r}.", {"uri": uri})
