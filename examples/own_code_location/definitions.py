"""embed_pipeline inside your own code location.

Your asset `recipes` writes entities into the graph. `entity_embeddings` depends on it, the sensor
of the queue embeds what it wrote, and your asset `recipe_finder` uses the vectors.

    dagster dev -f examples/own_code_location/definitions.py

Materialize `recipes`; within seconds `embed_job` runs by itself. Then materialize `recipe_finder`.
"""

import csv
from pathlib import Path

import dagster as dg

from embed_pipeline.defs.build import build_definitions
from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.settings import load_settings
from embed_pipeline.usecases.entities.create import upsert_entities
from embed_pipeline.usecases.insight.search import search
from embed_pipeline.worker.context import Services

RECIPES = Path(__file__).with_name("recipes.csv")


@dg.asset(group_name="kitchen", description="Recipes of the kitchen, as entities of the graph.")
def recipes(services: dg.ResourceParam[Services]) -> dg.MaterializeResult:
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
    report = upsert_entities(services.jobs, services.graph, entities, model=services.model)
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
def recipe_finder(services: dg.ResourceParam[Services]) -> dg.MaterializeResult:
    found = search(services, "a warming soup for a cold evening", limit=3, entity_type="recipe")
    hits = [f"- {hit.entity.name} ({hit.score:.2f})" for hit in found.hits]
    return dg.MaterializeResult(
        metadata={"hits": dg.MetadataValue.md("\n".join(hits)), "searched": found.searchable}
    )


defs = dg.Definitions.merge(
    dg.Definitions(assets=[recipes, recipe_finder]),
    build_definitions(load_settings(), deps=[recipes]),
)
