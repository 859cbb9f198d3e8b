"""Entities per second through the whole queue, beside the limit and beside a peer.

    python -m benchmarks.embedding [--entities 10000] [--dimensions 1536] [--latency 0.1]
                                   [--swapped] [--memory 100000] [--peer]

Both Neo4j servers and the provider run on loopback, on the same cores as the clients. The limit
is the slower of the provider alone and the vector writes alone. `--swapped` puts the graph on
the older server line, `--memory N` embeds N entities more and compares the peak memory, `--peer`
runs langchain-neo4j too (install requirements-benchmarks.txt for it). Both servers have done the
same work three times before anything is measured: their code is compiled then. The last columns
are processor seconds, of the servers with all that a process does before and after.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.servers import processor_seconds, production_server
from embed_pipeline_tests.neo4j_bed import PAIR, SWAPPED_PAIR, Server
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.neo4j_bed.probe import connect

WARM_UPS = 3

Measured = Mapping[str, float]


class Bench:
    """Two servers, a provider, and the settings by which a child process finds them."""

    def __init__(self, servers: list[Server], port: int, home: Path, dimensions: int) -> None:
        self._servers = servers
        self._environment = os.environ | {
            "EMBED_ENV": "local",
            "EMBED_STORE": "neo4j",
            "EMBED_HOME": str(home),
            "EMBEDDING_PROVIDER": "openai",
            "EMBEDDING_DIMENSIONS": str(dimensions),
            "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1",
            "OPENAI_API_KEY": "benchmark-key",
            "EMBEDDING_RATE_LIMIT_TOKENS": "1000000",
        }
        for server in servers:
            role, address = f"EMBED_{server.spec.name.upper()}", server.address
            self._environment |= {
                f"{role}_URI": address.uri,
                f"{role}_USER": address.user,
                f"{role}_PASSWORD": address.password,
                f"{role}_DATABASE": address.database,
            }

    def run(self, module: str, *arguments: str) -> Measured:
        before = self._processor_seconds()
        finished = subprocess.run(
            [sys.executable, "-m", f"benchmarks.embedding.{module}", *arguments],
            env=self._environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        measured: Measured = json.loads(finished.stdout.splitlines()[-1])
        after = self._processor_seconds()
        return {**measured, **{name: after[name] - before[name] for name in after}}

    def _processor_seconds(self) -> Measured:
        return {
            f"{one.spec.name}_cpu": processor_seconds(one.pid)
            for one in self._servers
            if one.pid is not None
        }

    def wipe(self) -> None:
        for server in self._servers:
            with connect(server.address) as driver:
                BedServer(
                    address=server.address, driver=driver, name=server.spec.name
                ).wipe_schema()

    def fresh(self, entities: int) -> None:
        self.wipe()
        self.run("ours", "fill", str(entities))


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
        provider = subprocess.Popen(
            [
                *(sys.executable, "-m", "benchmarks.embedding.provider_server"),
                *("--latency", str(given.latency), "--dimensions", str(given.dimensions)),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        stack.callback(provider.wait)
        stack.callback(provider.terminate)
        assert provider.stdout is not None
        port = int(provider.stdout.readline())
        yield Bench(servers, port, home, given.dimensions)


def main() -> None:
    given = arguments()
    count = given.entities
    with bench(given) as place:
        say("warming up …")
        for _ in range(WARM_UPS):
            place.fresh(count)
            place.run("ours", "drain")
        rows: list[tuple[str, Measured]] = []

        def measure(name: str, *command: str, entities: int = count) -> Measured:
            say(f"{name} …")
            place.fresh(entities)
            rows.append((name, place.run(*command)))
            return rows[-1][1]

        provider = measure("the provider alone", "ours", "provider", str(count))
        writes = measure("vector writes alone", "ours", "writes", str(count))
        ours = measure("embed_pipeline", "ours", "drain")
        if given.memory:
            measure(f"embed_pipeline, {given.memory}", "ours", "drain", entities=given.memory)
        if given.peer:
            measure("langchain-neo4j", "langchain", "--without-rust")
            measure("langchain-neo4j + rust", "langchain")
    limit = max(provider, writes, key=lambda measured: measured["seconds"])
    show(rows, ours=rate(ours), limit=rate(limit))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.embedding", description=__doc__)
    parser.add_argument("--entities", type=int, default=10_000)
    parser.add_argument("--dimensions", type=int, default=1536)
    parser.add_argument("--latency", type=float, default=0.1, help="the provider's, in seconds")
    parser.add_argument("--swapped", action="store_true", help="the graph on the older line")
    parser.add_argument("--memory", type=int, metavar="N", help="embed N entities as well")
    parser.add_argument("--peer", action="store_true", help="run langchain-neo4j as well")
    return parser.parse_args()


def rate(measured: Measured) -> float:
    return measured["entities"] / measured["seconds"]


def show(rows: list[tuple[str, Measured]], *, ours: float, limit: float) -> None:
    print(
        f"\n{'':28}{'entities/s':>11}{'of the limit':>13}{'ours is':>9}{'peak MB':>8}"
        f"{'graph':>9}{'queue':>8}{'client':>8}"
    )
    for name, measured in rows:
        speed = rate(measured)
        columns = (
            ("peak_mb", "8.0f"),
            ("graph_cpu", "7.1f"),
            ("queue_cpu", "6.1f"),
            ("our_cpu", "6.1f"),
        )
        rest = (f"{measured[key]:{form}}" if key in measured else "" for key, form in columns)
        peak, graph, queue, client = rest
        print(
            f"{name:28}{speed:11.0f}{speed / limit:13.2f}{ours / speed:8.1f}×{peak:>8}"
            f"{graph:>7} s{queue:>6} s{client:>6}{' s' if client else ''}"
        )


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
