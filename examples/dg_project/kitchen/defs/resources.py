"""What the assets of this project use."""

import dagster as dg

from embed_pipeline import EmbedPipelineResource, EntityIOManager


@dg.definitions
def resources() -> dg.Definitions:
    return dg.Definitions(
        resources={"embeddings": EmbedPipelineResource(), "entities": EntityIOManager()}
    )
