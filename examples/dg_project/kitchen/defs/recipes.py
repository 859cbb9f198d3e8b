"""An asset whose frame becomes entities, and one that uses their vectors."""

from pathlib import Path

import dagster as dg
import numpy as np
import pandas as pd

from embed_pipeline import EmbedPipelineResource

RECIPES = Path(__file__).with_name("recipes.csv")


@dg.asset(
    io_manager_key="entities",
    metadata={
        "embed_pipeline/entity_type": "recipe",
        "embed_pipeline/name": "dish",
        "embed_pipeline/text": "ingredients, method",
    },
)
def recipes() -> pd.DataFrame:
    """Each row becomes an entity. Only new and changed texts are embedded."""
    return pd.read_csv(RECIPES)


@dg.asset(deps=[dg.AssetKey(["kitchen", "entity_embeddings"])])
def most_alike(recipes: pd.DataFrame) -> dg.MaterializeResult:
    """The two recipes whose texts mean the most similar."""
    ready = recipes.dropna(subset="embedding").reset_index(drop=True)
    if len(ready) < 2:
        raise dg.Failure("Fewer than two recipes are embedded: materialize the embeddings first.")
    vectors = np.stack(ready["embedding"].to_list())
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    alike = np.triu(vectors @ vectors.T, k=1)
    first, second = np.unravel_index(alike.argmax(), alike.shape)
    return dg.MaterializeResult(
        metadata={"pair": f"{ready['name'][first]} and {ready['name'][second]}"}
    )


@dg.asset(deps=[dg.AssetKey(["kitchen", "entity_embeddings"])])
def cold_evening(embeddings: EmbedPipelineResource) -> dg.MaterializeResult:
    """What to cook on a cold evening, found by meaning."""
    with embeddings.get_pipeline() as pipeline:
        found = pipeline.search("a warming soup for a cold evening", limit=3, entity_type="recipe")
    hits = [f"- {hit.entity.name} ({hit.score:.2f})" for hit in found.hits]
    return dg.MaterializeResult(metadata={"hits": dg.MetadataValue.md("\n".join(hits))})
