"""Spans of OpenTelemetry around what takes time; nothing without an SDK in the host program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentelemetry.trace import Span

SCOPE = "embed_pipeline"


@contextmanager
def span(name: str, **attributes: str | int) -> Iterator[Span]:
    """Attributes are names and counts, never texts. An error is recorded by its class only, because
    its message could quote a text.
    """
    # Imported at the first span: most commands have none, and it takes 30 ms.
    from opentelemetry import trace

    with trace.get_tracer(SCOPE).start_as_current_span(
        name,
        attributes={_DOTTED.get(key, f"{SCOPE}.{key}"): value for key, value in attributes.items()},
        record_exception=False,
        set_status_on_exception=False,
    ) as current:
        try:
            yield current
        except BaseException as error:
            current.set_status(trace.StatusCode.ERROR)
            current.set_attribute("error.type", type(error).__name__)
            raise


_DOTTED = {
    "operation": "gen_ai.operation.name",
    "provider": "gen_ai.provider.name",
    "model": "gen_ai.request.model",
}
"""Attributes that OpenTelemetry's conventions name."""

INPUT_TOKENS = "gen_ai.usage.input_tokens"
