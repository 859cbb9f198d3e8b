"""A run never starts a model: the first one registers itself, another one is refused."""

from __future__ import annotations

from embed_pipeline.domain.embedding import ModelRecord, ModelState
from embed_pipeline.errors import ModelNotActive
from embed_pipeline.worker.context import Services


def ensure_model(services: Services) -> ModelRecord:
    """The record of the configured model, which takes vectors."""
    record = services.graph.register_first_model(
        services.model, dimensions=services.provider.dimensions
    )
    if record is not None and record.takes_vectors:
        return record
    active = [found.model for found in services.graph.models() if found.state is ModelState.ACTIVE]
    raise ModelNotActive(
        f"The graph is embedded with {', '.join(active) or 'no active model'}, the settings say "
        f"{services.model}: set EMBEDDING_PROVIDER, EMBEDDING_MODEL and EMBEDDING_DIMENSIONS back, "
        "or change the graph's model by hand (docs/operations.md, Changing the model)."
    )
