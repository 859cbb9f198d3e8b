"""Entities per second through the whole queue, beside the limit and beside a peer.

    python -m benchmarks.embedding [--entities 10000] [--dimensions 1536] [--latency 0.1]
                                   [--swapped] [--memory 30000 100000] [--peer]

Both Neo4j servers and the provider run on loopback, on the same cores as the clients. The limit
is the slower of the provider alone and the vector writes alone. `--swapped` puts the graph on
the older server line, `--memory N …` embeds N entities more and compares the peak memory, `--peer`
runs langchain-neo4j too (install requirements-benchmarks.txt for it).

Both servers have done the same work many times before anything is measured, because a server in
service has compiled its code and planned its statements; between the measurements the data goes and
the schema stays; what a process of ours loads and opens once comes before its time is taken. What
is compared takes turns, round after round, and its times are added up. The columns behind the
memory are microseconds of processor per entity, of each process while the time was taken, and how
much of all cores that is.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.embedding.stopwatch import OURSELVES, SERVERS, Measured
from benchmarks.servers import production_server
from embed_pipeline_tests.neo4j_bed import PAIR, SWAPPED_PAIR, Server, wiping
from embed_pipeline_tests.neo4j_bed.probe import connect

WARM_UPS, ROUNDS, PEER_ROUNDS = 12, 5, 3

PROVIDER, WRITES, QUEUE, IN_TURN, OURS, PEER = (
    "the provider alone",
    "vector writes alone",
    "the queue alone",
    "these three in turn",
    "embed_pipeline",
    "langchain-neo4j",
)
PARTS = {PROVIDER: "provider", WRITES: "writes", QUEUE: "queue"}
CORES = len(os.sched_getaffinity(0))
PROCESSES = ("graph", "queue", "provider", OURSELVES)


class Bench:
    """Two servers, a provider, and the settings by which a child process finds them."""

    def __init__(self, servers: list[Server], provider: Provider, home: Path) -> None:
        self._servers = servers
        processes = {one.spec.name: one.pid for one in servers} | {"provider": provider.process}
        self._environment = os.environ | {
            SERVERS: " ".join(f"{name}={process}" for name, process in processes.items()),
            "EMBED_ENV": "local",
            "EMBED_STORE": "neo4j",
            "EMBED_HOME": str(home),
            "EMBEDDING_PROVIDER": "openai",
            "EMBEDDING_DIMENSIONS": str(provider.dimensions),
            "OPENAI_BASE_URL": f"http://127.0.0.1:{provider.port}/v1",
            "OPENAI_API_KEY": "benchmark-key",
            "EMBEDDING_RATE_LIMIT_TOKENS": "1000000",
            "EMBED_ENTITY_TEXT": "name,summary",
        }
        for one in servers:
            role, address = f"EMBED_{one.spec.name.upper()}", one.address
            self._environment |= {
                f"{role}_URI": address.uri,
                f"{role}_USER": address.user,
                f"{role}_PASSWORD": address.password,
                f"{role}_DATABASE": address.database,
            }

    def run(self, module: str, *arguments: str) -> Measured:
        finished = subprocess.run(
            [sys.executable, "-m", f"benchmarks.embedding.{module}", *arguments],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if finished.returncode:
            sys.exit(finished.stderr[-2_000:])
        measured: Measured = json.loads(finished.stdout.splitlines()[-1])
        return measured

    def fresh(self, entities: int) -> None:
        for one in self._servers:
            with connect(one.address) as driver, driver.session() as session:
                wiping.delete_nodes(session)
        self.run("ours", "fill", str(entities))

    def forget_indexes(self) -> None:
        """The peer makes its own."""
        for one in self._servers:
            with connect(one.address) as driver, driver.session() as session:
                wiping.drop_vector_indexes(session)


@dataclass(frozen=True, slots=True)
class Provider:
    process: int
    port: int
    dimensions: int


@contextmanager
def bench(given: argparse.Namespace) -> Iterator[Bench]:
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        servers = [
            production_server(spec, home=home / spec.name)
            for spec in (SWAPPED_PAIR if given.swapped else PAIR)
        ]
        for one in servers:
            one.launch()
            stack.callback(one.stop)
        for one in servers:
            one.await_ready()
        yield Bench(servers, stack.enter_context(provider(given)), home)


@contextmanager
def provider(given: argparse.Namespace) -> Iterator[Provider]:
    serving = subprocess.Popen(
        [
            *(sys.executable, "-m", "benchmarks.embedding.provider_server"),
            *("--latency", str(given.latency), "--dimensions", str(given.dimensions)),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert serving.stdout is not None
    try:
        yield Provider(serving.pid, int(serving.stdout.readline()), given.dimensions)
    finally:
        serving.terminate()
        serving.wait()


class Table:
    """Rows by name; a row that is measured again adds up."""

    def __init__(self, place: Bench) -> None:
        self._place = place
        self.rows: dict[str, Measured] = {}

    def measure(self, name: str, *command: str, entities: int) -> None:
        say(f"{name} …")
        self._place.fresh(entities)
        measured = self._place.run(*command, str(entities))
        if command[1] == "drain":
            self._place.run("ours", "check", str(entities))
        row = self.rows.setdefault(name, defaultdict(float))
        for what, figure in measured.items():
            row[what] = max(row[what], figure) if what == "peak_mb" else row[what] + figure

    def rate(self, name: str) -> float:
        row = self.rows[name]
        return row["entities"] / row["seconds"]


def main() -> None:
    given = arguments()
    count = given.entities
    with bench(given) as place:
        say("warming up …")
        place.run("ours", "warm-up", str(count))
        for _ in range(WARM_UPS):
            place.fresh(count)
            place.run("ours", "drain", str(count))
        table = Table(place)
        for _ in range(ROUNDS):
            for name, task in PARTS.items():
                table.measure(name, "ours", task, entities=count)
            table.measure(OURS, "ours", "drain", entities=count)
        for many in given.memory:
            table.measure(f"{OURS}, {many}", "ours", "drain", entities=many)
        for _ in range(PEER_ROUNDS if given.peer else 0):
            place.forget_indexes()
            table.measure(f"{PEER}, as published", "langchain", "--without-rust", entities=count)
            place.forget_indexes()
            table.measure(f"{PEER} + rust", "langchain", "--with-rust", entities=count)
    show(table)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.embedding", description=__doc__)
    parser.add_argument("--entities", type=int, default=10_000)
    parser.add_argument("--dimensions", type=int, default=1536)
    parser.add_argument("--latency", type=float, default=0.1, help="the provider's, in seconds")
    parser.add_argument("--swapped", action="store_true", help="the graph on the older line")
    parser.add_argument(
        "--memory", type=int, nargs="+", default=[], metavar="N", help="embed N entities as well"
    )
    parser.add_argument("--peer", action="store_true", help="run langchain-neo4j as well")
    return parser.parse_args()


def show(table: Table) -> None:
    ours, limit = table.rate(OURS), min(table.rate(PROVIDER), table.rate(WRITES))
    print(
        f"\n{'':30}{'entities/s':>11}{'of the limit':>13}{'ours is':>9}{'peak MB':>8}"
        + "".join(f"{name:>9}" for name in (*PROCESSES, "busy"))
    )
    for name, row in table.rows.items():
        speed = table.rate(name)
        used = sum(row[process] for process in PROCESSES) / row["seconds"] / CORES
        print(
            f"{name:30}{speed:11.0f}{speed / limit:13.2f}{ours / speed:8.1f}×{row['peak_mb']:8.0f}"
            + "".join(f"{row[process] / row['entities'] * 1e6:9.0f}" for process in PROCESSES)
            + f"{used:9.0%}"
        )
    in_turn = 1 / sum(1 / table.rate(name) for name in PARTS)
    print(f"{IN_TURN:30}{in_turn:11.0f}{in_turn / limit:13.2f}{ours / in_turn:8.1f}×")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
