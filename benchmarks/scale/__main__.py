"""What people and sensors wait for, in graphs of growing size.

    python -m benchmarks.scale [--sizes 10000 100000] [--stores sqlite neo4j]

Every entity is embedded (mock provider, vectors of 256 numbers), nothing is queued. Servers are
started from the packages of the tests and removed afterwards. Times are medians, in milliseconds.
A million entities take some ten minutes, and on Neo4j 5 GB of memory (`--heap`, `--page-cache`).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.scale.backends import Backend, neo4j, sqlite
from benchmarks.scale.questions import Fresh, audit, first_search, missing, questions

ROUNDS = 15
WARM_UP_ROUNDS = 100
"""Of each question in a small graph: a server that was just started still compiles its code."""
FILL = 2_000
"""Entities whose vectors are written to measure the rate, at the start and at each size."""

Figures = dict[str, float]


def main() -> None:
    given = _arguments()
    for name in given.stores:
        with tempfile.TemporaryDirectory(prefix="scale-") as home, _opened(name, given, home) as it:
            _show(it.name, _measure(it, sorted(given.sizes), warm_up=given.warm_up))


def _arguments() -> argparse.Namespace:
    stores = ["sqlite", "neo4j"]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scale",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--stores", nargs="+", choices=stores, default=stores)
    parser.add_argument("--heap", default="2g", help="of the graph's server")
    parser.add_argument("--page-cache", default="2g", help="of the graph's server")
    parser.add_argument("--warm-up", type=int, default=WARM_UP_ROUNDS, help="rounds")
    return parser.parse_args()


@contextmanager
def _opened(name: str, given: argparse.Namespace, home: str) -> Iterator[Backend]:
    if name == "sqlite":
        opened = sqlite(Path(home))
    else:
        opened = neo4j(Path(home), heap=given.heap, page_cache=given.page_cache)
    with opened as backend:
        yield backend


def _measure(backend: Backend, sizes: Sequence[int], *, warm_up: int) -> dict[int, Figures]:
    """Each size is filled up from the one before."""
    fresh = Fresh(backend)
    at_the_start = backend.write(backend.create(0, FILL))
    for ask in questions(backend, FILL).values():
        _times(ask, warm_up)
    _times(fresh.create_50, ROUNDS)  # no more: they are entities too
    fresh.embed()
    filled, found = FILL, dict[int, Figures]()
    for size in sizes:
        backend.fill(filled, size - FILL)
        rate, filled = backend.write(backend.create(size - FILL, size)), size
        found[size] = _ask_all(backend, fresh, size) | {
            "vectors written per second, empty graph": at_the_start,
            "vectors written per second": rate,
            "MB on disk": backend.disk_mb(),
            "peak MB, this process": backend.peak_mb()[0],
            "peak MB, the graph's server": backend.peak_mb()[1],
        }
        print(json.dumps({"store": backend.name, "size": size} | found[size]), file=sys.stderr)
    return found


def _ask_all(backend: Backend, fresh: Fresh, size: int) -> dict[str, float]:
    asked = questions(backend, size)
    figures = {"search, the first of a process": _times(lambda: first_search(backend), 1)[0]}
    for title, ask in asked.items():
        figures[title] = statistics.median(_times(ask, ROUNDS))
    figures["create 50"] = statistics.median(_times(fresh.create_50, ROUNDS))
    fresh.unmark()
    some = f"missing(10), {50 * ROUNDS} missing"
    figures[some] = statistics.median(_times(lambda: missing(backend), ROUNDS))
    fresh.embed()
    figures["audit of all"] = _times(lambda: audit(backend), 1)[0]
    if backend.coverage_of_0_1 is not None:
        figures["coverage as 0.1 counted it"] = _times(backend.coverage_of_0_1, 1)[0]
    return figures


def _times(ask: Callable[[], object], rounds: int) -> list[float]:
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        ask()
        times.append(1000 * (time.perf_counter() - began))
    return times


def _show(name: str, found: Mapping[int, Figures]) -> None:
    sizes = list(found)
    heads = [f"{size:,}" for size in sizes]
    if len(sizes) > 1:
        heads.append(f"{sizes[-1]:,} ÷ {sizes[0]:,}")
    print(f"\n| {name}, entities | {' | '.join(heads)} |\n|---|{'---|' * len(heads)}")
    for title in found[sizes[0]]:
        row = [found[size][title] for size in sizes]
        cells = [f"{value:,.0f}" if value >= 100 else f"{value:.2g}" for value in row]
        if len(sizes) > 1:
            cells.append(f"{row[-1] / row[0]:.1f} ×" if row[0] else "–")
        print(f"| {title} | {' | '.join(cells)} |")
    print(flush=True)


if __name__ == "__main__":
    main()
