"""What a job remembers of an exception: redacted, and short enough to store."""

from __future__ import annotations

import traceback

from embed_pipeline.domain.job import ENTITY_GONE, FailureRecord
from embed_pipeline.errors import EmbedPipelineError, EmptyText, EntityGone, ErrorCategory
from embed_pipeline.telemetry import redact

LONGEST_MESSAGE, LONGEST_STACK = 1_000, 8_000


def record_of(error: BaseException) -> FailureRecord:
    """An error that nobody has classified is TRANSIENT: a bug must not end jobs at once."""
    stack = "".join(traceback.format_exception(error))
    return FailureRecord(
        category=(
            error.category if isinstance(error, EmbedPipelineError) else ErrorCategory.TRANSIENT
        ),
        error_type=type(error).__name__,
        message=redact(str(error) or type(error).__name__)[:LONGEST_MESSAGE],
        stack=redact(stack)[-LONGEST_STACK:],
    )


GONE = FailureRecord(
    category=EntityGone.category,
    error_type=EntityGone.__name__,
    message="The entity was deleted, or is no longer valid.",
    fail_code=ENTITY_GONE,
)

EMPTY = FailureRecord(
    category=EmptyText.category,
    error_type=EmptyText.__name__,
    message="The entity has no text to embed.",
)
