"""embed_pipeline inside your own code location.

Your asset `recipes` writes entities into the graph. `entity_embeddings` depends on it, the sensor
of the queue embeds what it wrote, and your asset `recipe_finder` uses the vectors.

    dagster dev -f examples/own_code_location/definitions.py

Materialize `recipes`; within seconds `embed_job` runs by itself. Then materialize `recipe_finder`.
"""

import csv
from pathlib import Path

import dagster as dg

from embed_pipeline import EmbedPipelineResource
from embed_pipeline.api import NewEntity
from embed_pipeline.defs.build import build_definitions
from embed_pipeline.settings import load_settings

RECIPES = Path(__file__).with_name("recipes.csv")


@dg.asset(group_name="kitchen", description="Recipes of the kitchen, as entities of the graph.")
def recipes(embeddings: EmbedPipelineResource) -> dg.MaterializeResult:
    """Loading the same recipes again queues nothing; a changed text is embedded again."""
    with RECIPES.open(newline="") as file:
        entities = [
            NewEntity(
                name=row["dish"],
                entity_type="recipe",
                properties={"observations": (row["ingredients"], row["method"])},
            )
            for row in csv.DictReader(file)
        ]
    with embeddings.get_pipeline() as pipeline:
        report = pipeline.upsert_entities(entities)
    return dg.MaterializeResult(
        metadata={
            "created": report.created,
            "changed": report.changed,
            "jobs": report.jobs.new_jobs,
        }
    )


@dg.asset(
    group_name="kitchen",
    deps=["entity_embeddings"],
    description="What to cook on a cold evening, found by meaning.",
)
def recipe_finder(embeddings: EmbedPipelineResource) -> dg.MaterializeResult:
    with embeddings.get_pipeline() as pipeline:
        found = pipeline.search("a warming soup for a cold evening", limit=3, entity_type="recipe")
    hits = [f"- {hit.entity.name} ({hit.score:.2f})" for hit in found.hits]
    return dg.MaterializeResult(
        metadata={"hits": dg.MetadataValue.md("\n".join(hits)), "searched": found.searchable}
    )


defs = dg.Definitions.merge(
    dg.Definitions(
        assets=[recipes, recipe_finder], resources={"embeddings": EmbedPipelineResource()}
    ),
    build_definitions(load_settings(), deps=[recipes]),
)
