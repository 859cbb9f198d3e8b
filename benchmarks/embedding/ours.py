"""What one process of ours does, measured from inside it; run by `benchmarks.embedding`.

    python -m benchmarks.embedding.ours (warm-up | fill | check) N
    python -m benchmarks.embedding.ours (drain | provider | writes | queue) N

The settings come from the environment. Prints one line of JSON.
"""

from __future__ import annotations

import json
import resource
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial

import numpy as np

from benchmarks.embedding.stopwatch import Measured, stopwatch
from embed_pipeline.domain.embedding import VectorWrite
from embed_pipeline.domain.entity import Entity, NewEntity
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.domain.lease import Lease
from embed_pipeline.domain.recipe import embedding_text
from embed_pipeline.settings import load_settings
from embed_pipeline.telemetry import configure
from embed_pipeline.usecases.entities.create import create_entities
from embed_pipeline.wiring import initialise_stores, open_services
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.leasing import ensure_model
from embed_pipeline.worker.run import drain
from embed_pipeline.worker.stop import Deadline

WORDS = (
    "graph",
    "queue",
    "lease",
    "batch",
    "vector",
    "entity",
    "model",
    "budget",
    "worker",
    "asset",
)


def fill(services: Services, count: int) -> Measured:
    """Entities of some thirty words each, and a job for every one of them."""
    for start in range(0, count, 1000):
        page = [_entity(number) for number in range(start, min(start + 1000, count))]
        create_entities(services.jobs, services.graph, page, model=services.model)
    return {}


def get_ready(services: Services) -> None:
    """What a process loads and opens once, for the first of its thousands of entities."""
    ensure_model(services)
    services.jobs.switch.read()
    services.provider.get_ready()
    services.provider.fit(["text"])


def drain_all(services: Services, count: int) -> Measured:
    get_ready(services)
    with stopwatch(count) as measured:
        drain(
            services, owner="benchmark", deadline=Deadline(services.clock, limit=timedelta(hours=1))
        )
    return measured


def warm_up(services: Services, count: int) -> Measured:
    """Many small batches: the servers compile what is called often, not what takes long."""
    fill(services, count)
    drain(
        services,
        owner="warm-up",
        limit=10,
        deadline=Deadline(services.clock, limit=timedelta(hours=1)),
    )
    return {}


def check(services: Services, count: int) -> Measured:
    """By the graph itself, not by what a run says of itself."""
    embedded = services.graph.counts(model=services.model).embedded
    assert embedded == count, f"{embedded} of {count} entities are embedded"
    return {}


def provider_alone(services: Services, count: int) -> Measured:
    """The same texts in the same requests, and nothing else."""
    entities = map(_entity, range(count))
    texts = [embedding_text((it.name, *it.properties.values())) for it in entities]
    size = services.run_limits.batch_size
    pages = [texts[start : start + size] for start in range(0, count, size)]
    get_ready(services)
    with stopwatch(count) as measured, ThreadPoolExecutor(services.run_limits.concurrency) as pool:
        list(pool.map(services.provider.embed, pages))
    return measured


def writes_alone(services: Services, count: int) -> Measured:
    """The same vectors by the same statement, and nothing else; the entities are there already."""
    get_ready(services)
    uids = [EntityUid(f"e{number:07}") for number in range(count)]
    found: dict[EntityUid, Entity] = {}
    for start in range(0, count, 2000):
        found |= services.graph.read_entities(uids[start : start + 2000])
    numbers = np.random.default_rng(3).standard_normal((count, services.provider.dimensions))
    vectors = numbers.astype(np.float32)
    writes = [
        VectorWrite(entity=found[uid], vector=vectors[number]) for number, uid in enumerate(uids)
    ]
    size = services.run_limits.write_size
    pages = [writes[start : start + size] for start in range(0, count, size)]
    with stopwatch(count) as measured, ThreadPoolExecutor(services.run_limits.writers) as pool:
        list(pool.map(lambda page: services.graph.write_vectors(page, model=services.model), pages))
    return measured


def queue_alone(services: Services, count: int) -> Measured:
    """The same leases and the same completions, and nothing between them."""
    get_ready(services)
    size = services.run_limits.write_size
    with stopwatch(count) as measured, ThreadPoolExecutor(services.run_limits.writers) as pool:
        while jobs := (lease := _lease(services)).jobs:
            ids = [job.id for job in jobs]
            pages = [ids[start : start + size] for start in range(0, len(ids), size)]
            list(pool.map(partial(services.jobs.complete, lease), pages))
    return measured


def _lease(services: Services) -> Lease:
    return services.jobs.lease(
        owner="benchmark",
        model=services.model,
        limit=services.run_limits.batch_size,
        token=uuid.uuid4().hex,
    )


def _entity(number: int) -> NewEntity:
    words = [WORDS[(number * step) % len(WORDS)] for step in range(1, 28)]
    return NewEntity(
        uid=EntityUid(f"e{number:07}"),
        name=f"Entity {number}",
        properties={"summary": " ".join(words)},
    )


TASKS = {
    "warm-up": warm_up,
    "fill": fill,
    "drain": drain_all,
    "check": check,
    "provider": provider_alone,
    "writes": writes_alone,
    "queue": queue_alone,
}


def main() -> None:
    task, count = sys.argv[1], int(sys.argv[2])
    settings = load_settings()
    configure(level=settings.logging.level, format="json")
    initialise_stores(settings)
    services = open_services(settings)
    measured = TASKS[task](services, count)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(measured | {"peak_mb": peak}))


if __name__ == "__main__":
    main()
