"""A service that creates entities itself: they are stored and queued in milliseconds.

Run it, then embed what it queued, and run it again to search:

    python examples/create_entities.py
    embed-pipeline run
    python examples/create_entities.py
"""

from __future__ import annotations

import time

from embed_pipeline.api import NewEntity, open_pipeline

ORDERS = [
    NewEntity(
        name="Order 1001",
        entity_type="Order",
        properties={"observations": ("Two clay pots.", "To be delivered on Friday.")},
    ),
    NewEntity(
        name="Order 1002",
        entity_type="Order",
        properties={"observations": ("A loom with punched cards.", "The customer picks it up.")},
    ),
]


def main() -> None:
    with open_pipeline() as pipeline:
        before = time.perf_counter()
        report = pipeline.upsert_entities(ORDERS)
        took = (time.perf_counter() - before) * 1000
        print(f"{report.created} created, {report.jobs.new_jobs} queued, in {took:.0f} ms")

        again = pipeline.upsert_entities(ORDERS)
        print(f"the same again: {again.unchanged} unchanged, {again.jobs.new_jobs} queued")

        result = pipeline.search("something to weave with", limit=1, entity_type="Order")
        print(f"{result.searchable} of {result.entities} orders can be found")
        for hit in result.hits:
            print(f"the nearest is {hit.entity.name} ({hit.score:.2f})")
        if not result.hits:
            print(pipeline.why("Order 1002")[0].message)


if __name__ == "__main__":
    main()
