"""One call of a tool: its answer as a sentence and as data, its errors as something to act on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp.types import CallToolResult, TextContent

from embed_pipeline.errors import EmbedPipelineError, ErrorCategory, RequestError
from embed_pipeline.interfaces.mcp.tool import AgentTool, Answer
from embed_pipeline.telemetry import emit, redact
from embed_pipeline.worker.context import Services

ADVICE: Mapping[ErrorCategory, str] = {
    ErrorCategory.TRANSIENT: "It may pass by itself: try again in a minute.",
    ErrorCategory.PERMANENT: "The same call will fail again.",
    ErrorCategory.CRITICAL: "Do not try again: a person has to act first.",
}


def call(services: Services, tool: AgentTool[Any], given: Mapping[str, Any]) -> CallToolResult:
    """Blocks, and raises nothing that the tool raised."""
    try:
        return _answered(tool.call(services, given))
    except RequestError as error:
        return _refused(str(error))
    except EmbedPipelineError as error:
        return _refused(f"{error} {ADVICE[error.category]}")
    except Exception as error:
        # A bug of ours: the protocol's own answer would carry the exception's text, unredacted.
        emit("tool.failed", tool=tool.name, error=error)
        return _refused(
            f"{tool.name} broke: {type(error).__name__}. This is a bug; the server's log has it."
        )


def _answered(answer: Answer) -> CallToolResult:
    facts = answer.model_dump_json(exclude={"message"})
    return CallToolResult(
        content=[_text(answer.message), _text(facts)],
        structured_content=answer.model_dump(mode="json"),
    )


def _refused(sentence: str) -> CallToolResult:
    return CallToolResult(content=[_text(redact(sentence))], is_error=True)


def _text(text: str) -> TextContent:
    return TextContent(type="text", text=text)
