"""A run never starts a model: the first one registers itself, another one is refused."""

from __future__ import annotations

from embed_pipeline.errors import ModelNotActive
from embed_pipeline.model.embedding import ModelRecord, ModelState
from embed_pipeline.worker.tools import Tools


def ensure_model(tools: Tools) -> ModelRecord:
    """The record of the configured model, which takes vectors."""
    record = tools.graph.register_first_model(tools.model, dimensions=tools.provider.dimensions)
    if record is not None and record.takes_vectors:
        return record
    active = [found.model for found in tools.graph.models() if found.state is ModelState.ACTIVE]
    raise ModelNotActive(
        f"The graph is embedded with {', '.join(active) or 'no active model'}, the settings say "
        f"{tools.model}: set EMBEDDING_PROVIDER, EMBEDDING_MODEL and EMBEDDING_DIMENSIONS back, or "
        "change the graph's model by hand (docs/operations.md, Changing the model)."
    )
