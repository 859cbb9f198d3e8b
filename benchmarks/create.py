"""How long `create_entities` of 50 entities takes on Neo4j: one caller, and 20 at once.

    python -m benchmarks.create [--callers 20] [--entities 50] [--rounds 5]

A graph server is started from the packages of the tests and removed afterwards. Every round
creates new entities; in the second table all callers share half of them.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Barrier

from benchmarks.servers import production_server
from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.stores.graph.entity_store import GraphEntityStore
from embed_pipeline.stores.neo4j.driver.database import Neo4jDatabase
from embed_pipeline.stores.neo4j.graph.backend import Neo4jGraph
from embed_pipeline.stores.neo4j.setup import schema
from embed_pipeline_tests.neo4j_bed import GRAPH

MODEL = "mock/mock@64"
WARM_UP = 100
"""Rounds, alone and at once: a server compiles what it has done thousands of times."""
TARGET_MS = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--callers", type=int, default=20)
    parser.add_argument("--entities", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    with graph() as store:
        bench = Bench(store, entities=given.entities)
        for _ in range(WARM_UP):
            bench.alone(given.callers)
            bench.at_once(given.callers)
        report("one caller", bench.alone(given.rounds * given.callers))
        times = [t for _ in range(given.rounds) for t in bench.at_once(given.callers)]
        report(f"{given.callers} callers at once", times)


class Bench:
    def __init__(self, store: GraphEntityStore, *, entities: int) -> None:
        self._store, self._entities = store, entities
        self._calls = 0

    def alone(self, calls: int) -> list[float]:
        return [self._create(self._new(), self._new()) for _ in range(calls)]

    def at_once(self, callers: int) -> list[float]:
        """Everybody's half is named in the same call of all; the other half is the caller's own."""
        together, shared = Barrier(callers), self._new()
        own = [self._new() for _ in range(callers)]

        def call(names: Sequence[str]) -> float:
            together.wait()
            return self._create(shared, names)

        with ThreadPoolExecutor(callers) as threads:
            return list(threads.map(call, own))

    def _new(self) -> list[str]:
        self._calls += 1
        return [f"entity {self._calls}-{number}" for number in range(self._entities // 2)]

    def _create(self, *names: Sequence[str]) -> float:
        entities = [
            NewEntity(name=name, properties={"observations": ("something about it",)})
            for part in names
            for name in part
        ]
        began = time.perf_counter()
        self._store.create_entities(entities, model=MODEL)
        return time.perf_counter() - began


def report(title: str, seconds: Sequence[float]) -> None:
    in_ms = sorted(1000 * second for second in seconds)
    median, slow = statistics.median(in_ms), in_ms[int(len(in_ms) * 0.95)]
    judged = "within" if median < TARGET_MS else "above"
    print(
        f"{title:22} {len(in_ms):4} transactions   median {median:7.1f} ms ({judged} {TARGET_MS})"
        f"   95 % {slow:7.1f} ms   slowest {in_ms[-1]:7.1f} ms",
        flush=True,
    )


@contextmanager
def graph() -> Iterator[GraphEntityStore]:
    with tempfile.TemporaryDirectory(prefix="create-benchmark-") as folder:
        server = production_server(GRAPH, home=Path(folder))
        server.start()
        try:
            address = server.address
            database = Neo4jDatabase(
                address.uri,
                user=address.user,
                password=address.password,
                database=address.database,
            )
            mapping = Collection()
            schema.prepare_graph(database, mapping)
            with closing(GraphEntityStore(Neo4jGraph(database, mapping=mapping))) as store:
                store.register_first_model(MODEL, dimensions=64)
                yield store
        finally:
            server.kill()


if __name__ == "__main__":
    main()
