"""What every sensor shares: how often it looks, and how it tells that it could not."""

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from embed_pipeline.errors import EmbedPipelineError
from embed_pipeline.telemetry import emit

EVERY_FIVE_SECONDS = 4
"""The daemon looks every 5 s; asking for 5 would often miss a round and get 8."""


class SensorCheckFailed(dg.DagsterError):
    """Dagster shows an error of its own family as it is: a red tick with our sentence on top.

    It keeps the cursor where it is too, also of a run status sensor, so the next tick tries again.
    """


@contextmanager
def concise_errors() -> Iterator[None]:
    try:
        yield
    except EmbedPipelineError as error:
        emit("look.failed", error=error)
        # The log has the causes; in the UI their stacks would bury the sentence.
        raise SensorCheckFailed(str(error)) from None
