"""Neo4j and SQLite as the benchmark fills and asks them, and what they take of the machine."""

from __future__ import annotations

import resource
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.servers import production_server
from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.embedding import VectorWrite
from embed_pipeline.domain.entity import Entity, NewEntity
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.settings import Settings, load_settings
from embed_pipeline.stores.neo4j.driver.database import Neo4jDatabase
from embed_pipeline.stores.neo4j.graph.rows import entity_of, facts_of
from embed_pipeline.wiring import initialise_stores, open_services
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.leasing import ensure_model
from embed_pipeline_tests.neo4j_bed import GRAPH, QUEUE
from embed_pipeline_tests.neo4j_bed.server import Server

DIMENSIONS = 256
PAGE = 1_000
SETTINGS = {
    "EMBED_ENV": "test",
    "EMBEDDING_PROVIDER": "mock",
    "EMBEDDING_DIMENSIONS": str(DIMENSIONS),
}

# What version 0.1 asked for its coverage, page by page: the numbers of a vector are loaded to
# count them.
COVERAGE_OF_0_1 = """
MATCH (e:Entity) USING INDEX SEEK e:Entity(uid)
WHERE e.uid > $after AND e.validTo IS NULL
WITH e ORDER BY e.uid LIMIT 500
RETURN [e.uid, e.name, e.entityType, e.validTo, null,
        e.name, e.entityType, e.observations] AS entity,
       CASE WHEN e.embedding IS NULL THEN NULL
            ELSE [e.embedding_model, e.embedding_version, size(e.embedding)] END AS facts
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    name: str
    services: Services
    home: Path
    opened: Callable[[], AbstractContextManager[Services]]
    """The same once more, as another process would open them."""
    ping: Callable[[], object]
    """The smallest question to the graph's database."""
    coverage_of_0_1: Callable[[], object] | None = None
    server: Server | None = None

    def fill(self, first: int, last: int) -> None:
        """Embedded entities, a page at a time. No job: the queue has a benchmark of its own."""
        for start in range(first, last, PAGE):
            self.write(self.create(start, min(start + PAGE, last)))

    def create(self, first: int, last: int) -> list[Entity]:
        new = [
            NewEntity(
                uid=EntityUid(f"e{number:08}"),
                name=f"entity {number}",
                entity_type=f"type {number % 20}",
                properties={"observations": (f"something about {number}",)},
            )
            for number in range(first, last)
        ]
        made = self.services.graph.create_entities(new, model=self.services.model)
        return [one.entity for one in made]

    def write(self, entities: list[Entity]) -> float:
        """Vectors at random; entities per second."""
        numbers = np.random.default_rng(len(entities)).standard_normal((len(entities), DIMENSIONS))
        vectors = numbers.astype(np.float32)
        began = time.perf_counter()
        for start in range(0, len(entities), 250):
            page = zip(entities[start : start + 250], vectors[start : start + 250], strict=True)
            writes = [VectorWrite(entity=entity, vector=vector) for entity, vector in page]
            self.services.graph.write_vectors(writes, model=self.services.model)
        return len(entities) / (time.perf_counter() - began)

    def disk_mb(self) -> float:
        """Without the log of transactions, as of the last checkpoint."""
        files = (path for path in self.home.rglob("*") if path.is_file())
        return sum(path.stat().st_size for path in files if "transactions" not in path.parts) / 1e6

    def peak_mb(self) -> tuple[float, float]:
        """Of this process, and of the graph's server."""
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        if self.server is None:
            return own, 0.0
        status = Path(f"/proc/{self.server.pid}/status").read_text(encoding="utf-8")
        line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        return own, int(line.split()[1]) / 1024


@contextmanager
def sqlite(home: Path) -> Iterator[Backend]:
    opened = partial(_services, home, {"EMBED_STORE": "sqlite"})
    with opened() as services:
        ping = services.graph.models
        yield Backend(name="SQLite", services=services, opened=opened, home=home, ping=ping)


@contextmanager
def neo4j(home: Path, *, heap: str, page_cache: str) -> Iterator[Backend]:
    with ExitStack() as stack:
        queue = production_server(QUEUE, home=home / "queue")
        graph = production_server(
            GRAPH,
            home=home / "graph",
            heap=heap,
            page_cache=page_cache,
            checkpoint_every="1m",  # so that the files have the size of the data
        )
        for server in (queue, graph):
            stack.callback(server.stop)
            server.launch()
        for server in (queue, graph):
            server.await_ready()
        variables = {
            f"EMBED_{role}_{name.upper()}": getattr(server.address, name)
            for role, server in (("QUEUE", queue), ("GRAPH", graph))
            for name in ("uri", "user", "password", "database")
        }
        variables["EMBED_STORE"] = "neo4j"
        initialise_stores(_settings(home, variables))
        opened = partial(_services, home, variables)
        database = stack.enter_context(closing(_database(graph)))
        yield Backend(
            name="Neo4j",
            services=stack.enter_context(opened()),
            opened=opened,
            home=home / "graph" / "data",
            ping=lambda: database.read(lambda tx: tx.all("RETURN 1 AS one")),
            coverage_of_0_1=lambda: _coverage_of_0_1(database),
            server=graph,
        )


def _settings(home: Path, variables: dict[str, str]) -> Settings:
    return load_settings(SETTINGS | variables | {"EMBED_HOME": str(home)})


@contextmanager
def _services(home: Path, variables: dict[str, str]) -> Iterator[Services]:
    services = open_services(_settings(home, variables))
    ensure_model(services)
    with closing(services.jobs), closing(services.graph), closing(services.limiter):
        yield services


def _database(server: Server) -> Neo4jDatabase:
    address = server.address
    return Neo4jDatabase(
        address.uri, user=address.user, password=address.password, database=address.database
    )


def _coverage_of_0_1(database: Neo4jDatabase) -> Counter[bool]:
    """By statement and by hashing every text, as commit 4fa41ca did; a page per transaction."""
    collection, counts, after = Collection(), Counter[bool](), ""
    while True:
        asked = {"after": after}
        rows = database.read(lambda tx: tx.all(COVERAGE_OF_0_1, **asked))  # noqa: B023
        for row in rows:
            entity, facts = entity_of(row["entity"], collection), facts_of(row["facts"])
            counts[facts is not None and facts.version == entity.version] += 1
        if len(rows) < 500:
            return counts
        after = entity.uid
