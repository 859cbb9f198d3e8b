"""How many jobs a second several workers lease and complete on one queue in Neo4j.

    python -m benchmarks.scaling [--workers 1 2 4 8] [--jobs 20000] [--batch 500]

Every worker is a process; nothing is done with the jobs, so it is the queue that is measured. A
server is started from the packages of the tests and removed afterwards. All run on the cores of
this machine, the server too: with workers on machines of their own it has these for itself.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from multiprocessing.synchronize import Barrier
from pathlib import Path

from benchmarks.queue.ours import MODEL, Ours
from benchmarks.servers import production_server
from embed_pipeline.stores.neo4j.driver.database import Neo4jDatabase
from embed_pipeline.stores.neo4j.queue.backend import Neo4jQueue
from embed_pipeline.stores.neo4j.queue.job_store import Neo4jJobStore
from embed_pipeline.stores.neo4j.setup import schema
from embed_pipeline_tests.neo4j_bed import QUEUE
from embed_pipeline_tests.neo4j_bed.server import Address

PROCESSES = multiprocessing.get_context("spawn")
WARM_UP_SECONDS = 60


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--batch", type=int, default=500)
    given = parser.parse_args()
    with server() as address:
        queue = Ours("Neo4j", lambda policy: Neo4jJobStore(opened(address), policy=policy))
        with closing(queue):
            warm_up(queue, given.batch)
            print(f"{'workers':>7}{'jobs/s':>9}{'a worker':>10}")
            for workers in given.workers:
                queue.enqueue(given.jobs)
                speed = given.jobs / seconds_of(workers, address, given.batch)
                print(f"{workers:7}{speed:9,.0f}{speed / workers:10,.0f}", flush=True)


def warm_up(queue: Ours, batch: int) -> None:
    """A server in service has run for days; one just started still compiles its own code."""
    began = time.perf_counter()
    while time.perf_counter() - began < WARM_UP_SECONDS:
        queue.enqueue(2 * batch)
        for size in (10, batch):
            queue.work(jobs=batch, batch=size, seconds=WARM_UP_SECONDS)


def seconds_of(workers: int, address: Address, batch: int) -> float:
    """From when all of them are ready to the end of the last one."""
    together = PROCESSES.Barrier(workers + 1)
    started = [
        PROCESSES.Process(target=work, args=(address, batch, together)) for _ in range(workers)
    ]
    for process in started:
        process.start()
    together.wait()
    began = time.perf_counter()
    for process in started:
        process.join()
        assert process.exitcode == 0
    return time.perf_counter() - began


def work(address: Address, batch: int, together: Barrier) -> None:
    owner = uuid.uuid4().hex
    with closing(Neo4jJobStore(opened(address))) as store:
        store.now()
        together.wait()
        while jobs := lease_and_complete(store, owner, batch):
            assert jobs <= batch


def lease_and_complete(store: Neo4jJobStore, owner: str, batch: int) -> int:
    lease = store.lease(owner=owner, model=MODEL, limit=batch, token=uuid.uuid4().hex)
    return len(store.complete(lease, lease.job_ids).done)


def opened(address: Address) -> Neo4jQueue:
    return Neo4jQueue(
        Neo4jDatabase(
            address.uri, user=address.user, password=address.password, database=address.database
        )
    )


@contextmanager
def server() -> Iterator[Address]:
    with tempfile.TemporaryDirectory(prefix="scaling-benchmark-") as folder:
        running = production_server(QUEUE, home=Path(folder))
        running.start()
        try:
            schema.prepare_queue(opened(running.address).database)
            yield running.address
        finally:
            running.kill()


if __name__ == "__main__":
    main()
